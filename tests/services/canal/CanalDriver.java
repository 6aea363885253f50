import com.alibaba.otter.canal.client.CanalConnector;
import com.alibaba.otter.canal.client.CanalConnectors;
import com.alibaba.otter.canal.protocol.CanalEntry;
import com.alibaba.otter.canal.protocol.Message;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Does with canal's own client what lines on its input say, and answers each with a line of JSON.
 *
 * single HOST PORT DESTINATION USER PASSWORD | list HOST:PORT,… DESTINATION USER PASSWORD
 * zookeeper HOST:PORT DESTINATION USER PASSWORD | connect | disconnect | subscribe FILTER | unsubscribe
 * get SIZE | getWithoutAck SIZE [MILLISECONDS] | ack ID | rollback [ID] | consume ROWS SIZE | latency ROWS
 * A dash stands for nothing.
 */
public final class CanalDriver {
    private static CanalConnector connector;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                out.println(answer(line.split(" ")));
            } catch (Exception | Error problem) {
                out.println("{\"error\":" + quoted(String.valueOf(problem)) + "}");
            }
        }
        System.exit(0);
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "single":
                InetSocketAddress one = new InetSocketAddress(words[1], Integer.parseInt(words[2]));
                connector = CanalConnectors.newSingleConnector(one, words[3], given(words[4]), given(words[5]));
                return "{}";
            case "list":
                List<InetSocketAddress> several = new ArrayList<>();
                for (String each : words[1].split(",")) {
                    String[] parts = each.split(":");
                    several.add(new InetSocketAddress(parts[0], Integer.parseInt(parts[1])));
                }
                connector = CanalConnectors.newClusterConnector(several, words[2], given(words[3]), given(words[4]));
                return "{}";
            case "zookeeper":
                connector = CanalConnectors.newClusterConnector(words[1], words[2], given(words[3]), given(words[4]));
                return "{}";
            case "connect":
                connector.connect();
                return "{}";
            case "disconnect":
                connector.disconnect();
                return "{}";
            case "subscribe":
                connector.subscribe(given(words[1]));
                return "{}";
            case "unsubscribe":
                connector.unsubscribe();
                return "{}";
            case "get":
                return shown(connector.get(Integer.parseInt(words[1])));
            case "getWithoutAck":
                int size = Integer.parseInt(words[1]);
                return shown(words.length < 3
                    ? connector.getWithoutAck(size)
                    : connector.getWithoutAck(size, Long.parseLong(words[2]), TimeUnit.MILLISECONDS));
            case "ack":
                connector.ack(Long.parseLong(words[1]));
                return "{}";
            case "rollback":
                if (words.length > 1) {
                    connector.rollback(Long.parseLong(words[1]));
                } else {
                    connector.rollback();
                }
                return "{}";
            case "consume":
                return consumed(Long.parseLong(words[1]), Integer.parseInt(words[2]));
            case "latency":
                return latencies(Integer.parseInt(words[1]));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String given(String word) {
        return word.equals("-") ? "" : word;
    }

    /** Every row change is parsed, and nothing is done with it. */
    private static String consumed(long rows, int size) throws Exception {
        long count = 0;
        long columns = 0;
        long begun = 0;
        while (count < rows) {
            Message message = connector.getWithoutAck(size, 1000L, TimeUnit.MILLISECONDS);
            if (message.getId() == -1) {
                continue;
            }
            if (begun == 0) {
                begun = System.nanoTime();
            }
            for (CanalEntry.Entry entry : message.getEntries()) {
                if (entry.getEntryType() == CanalEntry.EntryType.ROWDATA) {
                    CanalEntry.RowChange change = CanalEntry.RowChange.parseFrom(entry.getStoreValue());
                    for (CanalEntry.RowData row : change.getRowDatasList()) {
                        columns += row.getBeforeColumnsCount() + row.getAfterColumnsCount();
                        count++;
                    }
                }
            }
            connector.ack(message.getId());
        }
        long took = System.nanoTime() - begun;
        return "{\"rows\":" + count + ",\"columns\":" + columns + ",\"seconds\":" + took / 1e9 + "}";
    }

    /** The first column of each row says when it was written, in microseconds. */
    private static String latencies(int rows) throws Exception {
        StringBuilder found = new StringBuilder();
        int count = 0;
        while (count < rows) {
            Message message = connector.getWithoutAck(1000, 1000L, TimeUnit.MILLISECONDS);
            long now = micros();
            for (CanalEntry.Entry entry : message.getEntries()) {
                if (entry.getEntryType() == CanalEntry.EntryType.ROWDATA) {
                    CanalEntry.RowChange change = CanalEntry.RowChange.parseFrom(entry.getStoreValue());
                    for (CanalEntry.RowData row : change.getRowDatasList()) {
                        long written = Long.parseLong(row.getAfterColumns(1).getValue());
                        found.append(count == 0 ? "" : ",").append(now - written);
                        count++;
                    }
                }
            }
            connector.ack(message.getId());
        }
        return "{\"micros\":[" + found + "]}";
    }

    private static long micros() {
        java.time.Instant now = java.time.Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
    }

    private static String shown(Message message) throws Exception {
        StringBuilder text = new StringBuilder("{\"id\":" + message.getId() + ",\"entries\":[");
        String comma = "";
        for (CanalEntry.Entry entry : message.getEntries()) {
            text.append(comma).append(shown(entry));
            comma = ",";
        }
        return text.append("]}").toString();
    }

    private static String shown(CanalEntry.Entry entry) throws Exception {
        CanalEntry.Header header = entry.getHeader();
        StringBuilder text = new StringBuilder("{\"entryType\":" + quoted(entry.getEntryType().name()));
        text.append(",\"version\":").append(header.getVersion());
        text.append(",\"file\":").append(quoted(header.getLogfileName()));
        text.append(",\"offset\":").append(header.getLogfileOffset());
        text.append(",\"serverId\":").append(header.getServerId());
        text.append(",\"encoding\":").append(quoted(header.getServerenCode()));
        text.append(",\"time\":").append(header.getExecuteTime());
        text.append(",\"source\":").append(quoted(header.getSourceType().name()));
        text.append(",\"schema\":").append(quoted(header.getSchemaName()));
        text.append(",\"table\":").append(quoted(header.getTableName()));
        text.append(",\"length\":").append(header.getEventLength());
        text.append(",\"eventType\":").append(quoted(header.getEventType().name()));
        text.append(",\"gtid\":").append(quoted(header.getGtid())).append(",\"props\":{");
        String comma = "";
        for (CanalEntry.Pair pair : header.getPropsList()) {
            text.append(comma).append(quoted(pair.getKey())).append(":").append(quoted(pair.getValue()));
            comma = ",";
        }
        text.append("}");
        switch (entry.getEntryType()) {
            case TRANSACTIONBEGIN:
                text.append(",\"thread\":")
                    .append(CanalEntry.TransactionBegin.parseFrom(entry.getStoreValue()).getThreadId());
                break;
            case TRANSACTIONEND:
                text.append(",\"transaction\":")
                    .append(quoted(CanalEntry.TransactionEnd.parseFrom(entry.getStoreValue()).getTransactionId()));
                break;
            default:
                text.append(",\"change\":").append(shown(CanalEntry.RowChange.parseFrom(entry.getStoreValue())));
        }
        return text.append("}").toString();
    }

    private static String shown(CanalEntry.RowChange change) {
        StringBuilder text = new StringBuilder("{\"eventType\":" + quoted(change.getEventType().name()));
        text.append(",\"isDdl\":").append(change.getIsDdl()).append(",\"sql\":").append(quoted(change.getSql()));
        text.append(",\"ddlSchema\":").append(quoted(change.getDdlSchemaName())).append(",\"rows\":[");
        String comma = "";
        for (CanalEntry.RowData row : change.getRowDatasList()) {
            text.append(comma).append("{\"before\":").append(shown(row.getBeforeColumnsList()));
            text.append(",\"after\":").append(shown(row.getAfterColumnsList())).append("}");
            comma = ",";
        }
        return text.append("]}").toString();
    }

    private static String shown(List<CanalEntry.Column> columns) {
        StringBuilder text = new StringBuilder("[");
        String comma = "";
        for (CanalEntry.Column column : columns) {
            text.append(comma).append("{\"index\":").append(column.getIndex());
            text.append(",\"sqlType\":").append(column.getSqlType()).append(",\"name\":").append(quoted(column.getName()));
            text.append(",\"isKey\":").append(column.getIsKey()).append(",\"updated\":").append(column.getUpdated());
            text.append(",\"isNull\":").append(column.getIsNull()).append(",\"value\":").append(quoted(column.getValue()));
            text.append(",\"mysqlType\":").append(quoted(column.getMysqlType())).append("}");
            comma = ",";
        }
        return text.append("]").toString();
    }

    private static String quoted(String text) {
        StringBuilder found = new StringBuilder("\"");
        for (char letter : text.toCharArray()) {
            if (letter == '"' || letter == '\\') {
                found.append('\\').append(letter);
            } else if (letter < ' ' || letter > '~') {
                found.append(String.format("\\u%04x", (int) letter));
            } else {
                found.append(letter);
            }
        }
        return found.append("\"").toString();
    }
}
