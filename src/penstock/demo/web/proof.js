// The proof that the index equals the database, and the damage that it must find.

import {byId, call, count, element} from "./dom.js";

const BUTTONS = ["verify", "damage", "repair"];

async function run(path, body, show) {
  for (const id of BUTTONS) byId(id).disabled = true;
  say("comparing …", "soft");
  byId("differences").replaceChildren();
  try {
    show(await call(path, body));
  } catch (error) { say(error.message, "problem"); }
  for (const id of BUTTONS) byId(id).disabled = false;
}

function say(text, look) {
  byId("verdict").textContent = text;
  byId("verdict").className = look;
}

function showResult({equal, documents, differences, counts, unsettled, repaired}) {
  const found = Object.entries(counts).filter(([, number]) => number).map(([kind, number]) => `${number} ${kind}`);
  if (repaired) say(`${count(repaired, "document")} repaired: ${found.join(", ")}`, "good");
  else if (equal) say(`equal: ${count(documents, "document")}`, "good");
  else say(found.length ? `not equal: ${found.join(", ")}` : `not settled: ${unsettled}`, "problem");
  byId("differences").replaceChildren(...differences.map(text => element("li", {}, text)));
}

export function setUpProof(onRepair) {
  byId("verify").onclick = () => run("/api/verify", {repair: false}, showResult);
  byId("damage").onclick = () => run("/api/damage", {}, answer => { say(answer.text, "soft"); onRepair(); });
  byId("repair").onclick = () => run("/api/verify", {repair: true}, answer => { showResult(answer); onRepair(); });
}
