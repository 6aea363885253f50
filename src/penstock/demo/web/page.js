// The search box, the list of changes with their milliseconds, and the clock that refreshes picture and hits.

import {byId, call, count, element, money, number, replace} from "./dom.js";
import {chosenOrder, chooseOrder, refreshOrder, setUp} from "./order.js";
import {drawPicture, showNumbers} from "./picture.js";
import {setUpProof} from "./proof.js";

const LISTED = 12, REFRESH_MS = 1000;
let asked = 0, shown = "", documents = null, timer;

async function search() {
  const mine = ++asked;
  try {
    const answer = await call("/api/search?q=" + encodeURIComponent(byId("q").value));
    if (mine !== asked) return;
    const hits = answer.has_more ? `the first ${answer.hits.length} hits` : count(answer.hits.length, "hit");
    const line = `${hits} of ${count(answer.documents, "order")}`;
    if (byId("count").textContent !== line) byId("count").textContent = line;
    const content = JSON.stringify(answer.hits);
    if (content === shown) return;
    shown = content;
    replace(byId("hits"), answer.hits.map(hitRow), byId("q"));
    markChosen();
  } catch (error) { byId("count").textContent = "The index cannot be searched: " + error.message; }
}

function hitRow(hit) {
  const total = hit.lines.reduce((sum, line) => sum + line.quantity * line.product.price, 0);
  const lines = hit.lines.map(line => `${line.quantity} × ${line.product.name}`).join(", ") || "no lines";
  const row = element("button", {type: "button", onclick: () => chooseOrder(hit.id)},
    element("span", {className: "head"}, element("b", {}, hit.number), ` ${hit.customer.name}, ${hit.customer.city}`),
    element("span", {className: "amount"}, money(total)),
    element("span", {className: "lines"}, lines),
    element("span", {className: "tags"},
      element("span", {className: "state"}, hit.state), ...hit.tags.map(tag => element("span", {className: "tag"}, tag.name))));
  row.dataset.key = hit.id;
  return element("li", {}, row);
}

function markChosen() {
  for (const row of document.querySelectorAll("#hits button")) {
    row.setAttribute("aria-current", String(row.dataset.key === String(chosenOrder())));
  }
}

function listChange({text, documents, latency_ms}) {
  const isLate = latency_ms === null, isIdle = documents === 0;
  const time = isLate ? "not seen" : isIdle ? "–" : `${number(latency_ms)} ms`;
  byId("none").hidden = true;
  byId("log").prepend(element("li", {},
    element("b", {className: isLate ? "late" : ""}, time),
    element("span", {}, text),
    element("span", {className: "soft touched"}, count(documents, "document"))));
  while (byId("log").children.length > LISTED) byId("log").lastChild.remove();
}

async function refresh() {
  if (!document.hidden) {
    try {
      const numbers = await call("/api/pipeline");
      showNumbers(numbers);
      byId("problem").textContent = numbers.problem;
      // Changes of others show, too: whenever documents were written, the same search is made again.
      if (documents !== null && documents !== numbers.documents.documents) search();
      documents = numbers.documents.documents;
    } catch (error) {
      showNumbers(null);
      byId("problem").textContent = error.message;
    }
  }
  setTimeout(refresh, REFRESH_MS);
}

function tryExample(event) {
  byId("q").value = event.currentTarget.textContent;
  byId("q").focus();
  search();
}

byId("q").oninput = () => { clearTimeout(timer); timer = setTimeout(search, 80); };
for (const example of document.querySelectorAll("#examples button")) example.onclick = tryExample;
setUp({onChange: timed => { listChange(timed); search(); }, onChoose: markChosen});
setUpProof(search);
drawPicture(byId("picture"));
fetch("/orders.yml").then(answer => answer.text()).then(text => { byId("spec").textContent = text; });
search();
refresh();
document.addEventListener("visibilitychange", () => { if (!document.hidden) { search(); refreshOrder(); } });
