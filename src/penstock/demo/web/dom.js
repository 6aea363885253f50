// Elements and calls. Values become text nodes and attributes, never markup: there is no other way here to show one.

export const byId = id => document.getElementById(id);

export function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null));
  return made;
}

export async function call(path, body) {
  const options = body && {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)};
  let answer, value;
  try {
    answer = await fetch(path, options);
    value = await answer.json();
  } catch { throw new Error("the demo does not answer; is it still running?"); }
  if (!answer.ok) throw new Error(value.error || answer.statusText);
  return value;
}

export const number = value => Math.round(value).toLocaleString("en");
export const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
export const money = value => Number(value).toLocaleString("en", {minimumFractionDigits: 2, maximumFractionDigits: 2});

// Replaces children and lets the focus stay where it was: on the element with the same `data-key`, else on `fallback`.
export function replace(parent, children, fallback) {
  const active = document.activeElement;
  const key = parent.contains(active) ? active.dataset.key : null;
  parent.replaceChildren(...children);
  if (key) (parent.querySelector(`[data-key="${CSS.escape(key)}"]`) ?? fallback)?.focus();
}
