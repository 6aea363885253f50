"""Values → text: SQL, JSON lines, CSV, lines for a terminal; and Arrow and Parquet files."""
