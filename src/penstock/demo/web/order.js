// The order that was chosen, as the database has it, and the changes that can be made to it and to what it shares.

import {byId, call, count, element, money, replace} from "./dom.js";

let order = null, choices = null, events = null;

export const chosenOrder = () => order?.id ?? null;

export function setUp(callbacks) {
  events = callbacks;
  byId("new").onclick = () => make({kind: "new_order"});
  byId("raise").onclick = () => make({kind: "raise_prices"});
  byId("cancel").onclick = () => byId("dialog").close();
}

export async function chooseOrder(id) {
  try { await load(id); } catch (error) { byId("message").textContent = error.message; return; }
  byId("message").textContent = "";
  byId("order-title").focus({preventScroll: true});
  byId("order-title").scrollIntoView({block: "nearest"});
}

export async function refreshOrder() {
  if (order !== null) await load(order.id).catch(() => forget("This order is deleted."));
}

async function load(id) {
  [order, choices] = await Promise.all([call("/api/order/" + id), call("/api/choices")]);
  render();
  events.onChoose();
}

function forget(text) {
  order = null;
  byId("order-title").textContent = "Change an order in the database";
  replace(byId("order"), [element("p", {className: "soft"}, text)], byId("order-title"));
  events.onChoose();
}

async function make(change) {
  const active = document.activeElement, buttons = [byId("new"), byId("raise")];
  byId("message").textContent = "";
  byId("order").setAttribute("aria-busy", "true");
  for (const part of [byId("order"), ...buttons]) part.disabled = true;
  try {
    const timed = await call("/api/change", change);
    events.onChange(timed);
    if (change.kind === "delete_order") forget("The order is deleted. Choose another one.");
    else if (change.kind === "new_order") await load(timed.order);
    else await refreshOrder();
  } catch (error) { byId("message").textContent = error.message; }
  for (const part of [byId("order"), ...buttons]) part.disabled = false;
  byId("order").removeAttribute("aria-busy");
  // What was disabled has lost the focus; what was drawn again is found by its key.
  const same = active.dataset.key && byId("order").querySelector(`[data-key="${CSS.escape(active.dataset.key)}"]`);
  if (buttons.includes(active)) active.focus();
  else (same || byId("order-title")).focus({preventScroll: true});
}

function render() {
  byId("order-title").textContent = `Order ${order.number} of ${order.customer.name}, ${order.customer.city}`;
  replace(byId("order"), [stateField(), ...lineFields(), ...tagFields()], byId("order-title"));
}

function button(key, text, label, change, properties = {}) {
  const made = element("button", {type: "button", "aria-label": label, onclick: change, ...properties}, text);
  made.dataset.key = key;
  return made;
}

function stateField() {
  const options = choices.states.map(state => element("option", {value: state, selected: state === order.state},
    state === "draft" ? "draft (not searchable)" : state));
  const select = element("select", {id: "state", onchange: () => make({kind: "set_state", order: order.id, state: select.value})},
    ...options);
  select.dataset.key = "state";
  const remove = () => make({kind: "delete_order", order: order.id});
  return element("p", {className: "row"}, element("label", {htmlFor: "state"}, "State"), select,
    button("delete", "Delete", "Delete this order", remove, {className: "danger"}));
}

function lineFields() {
  const lines = order.lines.map(({id, quantity, product}) => element("li", {},
    element("span", {className: "name"}, `${quantity} × ${product.name}`),
    element("span", {className: "amount"}, money(quantity * product.price)),
    button(`product-${id}`, "Change", `Change the product ${product.name}`, () => changeProduct(product)),
    button(`remove-${id}`, "Remove", `Remove the line with ${product.name}`, () => make({kind: "remove_line", line: id}))));
  const product = element("select", {id: "product", "aria-label": "Product"},
    ...choices.products.map(({id, name}) => element("option", {value: id}, name)));
  product.dataset.key = "product";
  const quantity = element("input", {id: "quantity", value: "1", inputMode: "numeric", size: 3, "aria-label": "Quantity"});
  quantity.dataset.key = "quantity";
  const add = () => make({kind: "add_line", order: order.id, product: Number(product.value), quantity: quantity.value});
  return [
    element("h3", {}, "Lines"),
    lines.length ? element("ul", {className: "items"}, ...lines) : element("p", {className: "soft"}, "No lines."),
    element("p", {className: "row"}, quantity, "×", product, button("add-line", "Add line", "Add line", add)),
  ];
}

function tagFields() {
  const tags = order.tags.map(tag => element("li", {},
    element("span", {className: "name"}, element("span", {className: "tag"}, tag.name)),
    button(`tag-${tag.id}`, "Rename", `Rename the tag ${tag.name}`, () => renameTag(tag)),
    button(`off-${tag.id}`, "Take off", `Take off the tag ${tag.name}`,
      () => make({kind: "take_off_tag", order: order.id, tag: tag.id}))));
  const others = choices.tags.filter(({id}) => !order.tags.some(tag => tag.id === id));
  const select = element("select", {id: "tag", "aria-label": "Tag"}, ...others.map(({id, name}) => element("option", {value: id}, name)));
  select.dataset.key = "tag";
  const put = () => make({kind: "put_on_tag", order: order.id, tag: Number(select.value)});
  return [
    element("h3", {}, "Tags"),
    tags.length ? element("ul", {className: "items"}, ...tags) : element("p", {className: "soft"}, "No tags."),
    element("p", {className: "row"}, select, button("put-tag", "Put on tag", "Put on tag", put, {disabled: !others.length})),
  ];
}

function changeProduct(product) {
  openDialog(`Change ${product.name}`, product.documents, product.name, product.price,
    (name, price) => ({kind: "change_product", product: product.id, name, price}));
}

function renameTag(tag) {
  openDialog(`Rename the tag ${tag.name}`, tag.documents, tag.name, null, name => ({kind: "rename_tag", tag: tag.id, name}));
}

function openDialog(title, documents, name, price, toChange) {
  byId("dialog-title").textContent = title;
  byId("dialog-note").textContent = `The change touches ${count(documents, "document")}.`;
  byId("dialog-problem").textContent = "";
  byId("name").value = name;
  byId("price").value = price ?? "";
  byId("price-field").hidden = price === null;
  byId("dialog").querySelector("form").onsubmit = event => {
    if (price !== null && !/^\s*\d+(\.\d+)?\s*$/.test(byId("price").value)) {
      event.preventDefault();
      byId("dialog-problem").textContent = "A price is a number such as 12.50.";
      byId("price").focus();
      return;
    }
    const change = toChange(byId("name").value, byId("price").value.trim());
    byId("dialog").addEventListener("close", () => make(change), {once: true});  // when the focus is back
  };
  byId("dialog").showModal();
  byId("name").select();
}
