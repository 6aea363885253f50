// The picture of the pipeline: stations from the log to the index, with numbers that are refreshed about once a second.
// It has as many columns as fit, and runs to and fro through its rows.

import {number} from "./dom.js";

const HEIGHT = 96, GAP = 30, LEAST_WIDTH = 132;
const PADDING = 11, TITLE_Y = 23, FIRST_LINE_Y = 46, LINE_Y = 18;

const bytes = value => value < 1e3 ? `${value} B` : value < 1e6 ? `${(value / 1e3).toFixed(1)} kB` : `${(value / 1e6).toFixed(1)} MB`;
const rate = value => value === 0 || value >= 10 ? number(value) : value.toFixed(1);
const seconds = value => value === null ? "–" : value === 0 ? "0 s" : `≤ ${value.toFixed(1)} s`;
const orDash = (value, text) => value === null ? "–" : text(value);

// Title, then a name and a text for each line, from the numbers of the demo.
const STATIONS = [
  ["MariaDB log", [
    ["file", ({log}) => log.file],
    ["transactions", ({log}) => number(log.transactions)],
    ["events", ({log}) => number(log.events)]]],
  ["Capture", [
    ["state", ({capture}) => capture.state],
    ["position", ({capture}) => number(capture.position)],
    ["behind", ({capture}) => orDash(capture.behind_s, value => `${number(value)} s`)]]],
  ["Store", [
    ["entries", ({store}) => number(store.entries)],
    ["size", ({store}) => bytes(store.bytes)],
    ["so far", ({store}) => number(store.put_sequence)]]],
  ["Spark", [
    ["changes/s", ({spark}) => rate(spark.changes_per_s)],
    ["position", ({spark}) => orDash(spark.position, number)],
    ["batch", ({spark}) => orDash(spark.batch_ms, value => `${number(value)} ms`)]]],
  ["Documents", [
    ["documents/s", ({documents}) => rate(documents.per_s)],
    ["changes", ({documents}) => number(documents.changes)],
    ["so far", ({documents}) => number(documents.documents)]]],
  ["Index", [
    ["documents", ({index}) => number(index.documents)],
    ["lag", ({index}) => seconds(index.lag_s)],
    ["dead letters", ({index}) => number(index.dead_letters)]]],
];

let picture, stations, arrows;

function shape(tag, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

export function drawPicture(svg) {
  picture = svg;
  arrows = STATIONS.slice(1).map(() => {
    const group = shape("g", {class: "arrow", "aria-hidden": "true"}, svg);
    return {shaft: shape("path", {class: "shaft"}, group), head: shape("path", {}, group)};
  });
  stations = STATIONS.map(([title, lines]) => {
    const group = shape("g", {class: "station", role: "listitem"}, svg);
    const box = shape("rect", {height: HEIGHT, rx: 9}, group);
    shape("text", {class: "title", x: PADDING, y: TITLE_Y}, group, title);
    const values = lines.map(([name], row) => {
      shape("text", {class: "label", x: PADDING, y: FIRST_LINE_Y + row * LINE_Y}, group, name);
      return shape("text", {class: "value", y: FIRST_LINE_Y + row * LINE_Y, "text-anchor": "end"}, group, "–");
    });
    return {group, box, values};
  });
  new ResizeObserver(arrange).observe(svg.parentElement);
  arrange();
}

function arrange() {
  const width = picture.clientWidth;
  const fits = columns => (width - (columns - 1) * GAP) / columns >= LEAST_WIDTH;
  const columns = [6, 3, 2].find(fits) ?? 1;
  const rows = Math.ceil(stations.length / columns);
  const boxWidth = (width - (columns - 1) * GAP) / columns;
  const height = rows * HEIGHT + (rows - 1) * GAP;
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("height", height);
  const spots = stations.map((_, place) => {
    const row = Math.floor(place / columns), column = place % columns;
    return {row, x: (row % 2 ? columns - 1 - column : column) * (boxWidth + GAP), y: row * (HEIGHT + GAP)};
  });
  stations.forEach(({group, box, values}, place) => {
    group.setAttribute("transform", `translate(${spots[place].x} ${spots[place].y})`);
    box.setAttribute("width", boxWidth);
    for (const value of values) value.setAttribute("x", boxWidth - PADDING);
  });
  arrows.forEach((arrow, place) => drawArrow(arrow, spots[place], spots[place + 1], boxWidth));
}

// A line from the edge of one box to the edge of the next, and its head.
function drawArrow({shaft, head}, from, to, boxWidth) {
  const [dx, dy] = from.row !== to.row ? [0, 1] : [Math.sign(to.x - from.x), 0];
  const x = from.x + (dx === 1 ? boxWidth : dx === 0 ? boxWidth / 2 : 0), y = from.y + (dy ? HEIGHT : HEIGHT / 2);
  const endX = x + dx * (GAP - 5), endY = y + dy * (GAP - 5);
  const side = sign => `${endX - dx * 7 + sign * dy * 5} ${endY - dy * 7 + sign * dx * 5}`;
  shaft.setAttribute("d", `M${x + dx * 5} ${y + dy * 5}L${endX} ${endY}`);
  head.setAttribute("d", `M${side(1)}L${endX} ${endY}L${side(-1)}`);
}

export function showNumbers(numbers) {
  STATIONS.forEach(([, lines], place) => lines.forEach(([, toText], row) => {
    const value = stations[place].values[row], text = numbers === null ? "–" : toText(numbers);
    if (value.textContent === text) return;
    value.textContent = text;
    value.classList.remove("moved");
    if (numbers !== null) requestAnimationFrame(() => value.classList.add("moved"));
  }));
  picture.classList.toggle("flowing", numbers !== null && numbers.spark.changes_per_s > 0);
  stations.at(-1).group.classList.toggle("alarm", numbers !== null && numbers.index.dead_letters > 0);
}
