// What the page shows. Functions here read the visit and write into the page, nothing else.

import * as charts from "./charts.js";

export const $ = (id) => document.getElementById(id);
export const keyName = (key) =>
  ({ArrowLeft: "←", ArrowUp: "↑", ArrowRight: "→", ArrowDown: "↓"})[key] || key;
const PLAYERS = {agent: ["agent", "--accent"], you: ["you", "--you"]};
const EXPERIMENTS = {
  wipe: () => "its memory was wiped",
  change: (place) => `the world changed: ${place.change}`,
  transplant: () => "it was given another lane's memory",
};

const short = (value) => value.toFixed(2).replace(/^-(0\.00)$/, "$1");

function element(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
}

export function say(text, bad = false) {
  $("message").textContent = text;
  $("message").classList.toggle("bad", bad);
}

// ---------------------------------------------------------------- once per session

export function showPlace(place, about, onMove) {
  const you = place.player === "you";
  $("environment").textContent = place.environment.replace(/^amago\//, "").replace(/-v\d+$/, "");
  $("horizon").textContent = place.horizon;
  $("picture-help").textContent = place.picture;
  $("sees").textContent = place.sees && `${place.sees}:`;
  $("policy-title").textContent = you ? "What it would do in your place" : "What it will do";
  $("dark-choice").hidden = !place.can_be_dark;
  document.querySelector("input[name=player][value=you]").disabled = place.moves.length === 0;
  showPlayer(place);
  $("asking").hidden = place.goals === null;
  document.querySelector("main").classList.toggle("asks", place.goals !== null);
  $("goal-help").textContent = place.goals || "";
  $("parsed").textContent = "";
  $("change-hint").textContent = place.change === null
    ? `This world cannot be changed under the agent: ${place.why_not_change}.` : `Changing the world: ${place.change}.`;
  $("past").hidden = true;
  buildHeads(place);
  buildMoves(place, onMove);
  buildBars($("probabilities"), place.actions);
  buildBars($("q"), place.discounts.map((discount) => `γ ${+discount.toFixed(3)}`));
  showCard(about);
}

export function showPlayer(place) {
  document.querySelector(`input[name=player][value=${place.player}]`).checked = true;
}

function buildHeads(place) {
  const options = [new Option("all heads", "-1,-1")];
  for (let layer = 0; layer < place.layers; layer++) {
    for (let head = 0; head < place.heads; head++) {
      options.push(new Option(`layer ${layer + 1}, head ${head + 1}`, `${layer},${head}`));
    }
  }
  $("head").replaceChildren(...options);
  $("attention").hidden = place.layers === 0;
}

function buildMoves(place, onMove) {
  $("moves").hidden = place.player !== "you";
  $("moves").replaceChildren(...place.moves.map((move, index) => {
    const button = element("button", move.name);
    button.append(element("kbd", keyName(move.key)));
    button.onclick = () => onMove(index);
    return button;
  }));
}

function showCard(about) {
  const given = Object.entries(about.arguments).map(([name, value]) => `${name}=${value}`);
  const rows = [["environment", [about.environment, ...given].join(" ")], ["memory", about.memory]];
  if (about.score !== null) {
    rows.push(["return", `${about.score} on unseen worlds; random play ${about.random ?? "unknown"}`]);
  }
  if (about.command) rows.push(["command", about.command]);
  if (about.needs) rows.push(["needs", `pip install 'amago[${about.needs}]'`]);
  if (about.limits.length) rows.push(["limits", about.limits.join("; ")]);
  $("card").replaceChildren(
    ...rows.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
}

// ---------------------------------------------------------------- once per step

export function showStep(visit) {
  const {state, history} = visit;
  if (state.frame) $("frame").src = state.frame;
  $("stage").classList.toggle("empty", !state.frame);
  $("time").textContent = state.time;
  $("total").textContent = +state.total.toFixed(2);
  const trials = history.filter((row) => row.first).length;
  $("trial").textContent = trials > 1 ? `trial ${trials}` : "";
  $("obs").textContent = describe(state.obs);
  $("asked").replaceChildren(
    ...state.asked.map(([text, done]) => element("li", text, done ? "done" : "")));
  showPolicy(state);
  showValues(visit);
  showCurve(visit);
  showStrip(visit);
  $("log").replaceChildren(...state.experiments.map(
    ([kind, time]) => element("li", `step ${time}: ${EXPERIMENTS[kind](visit.place)}`)));
  showButtons(visit);
}

const describe = (obs) => Object.values(obs).map((numbers) => numbers.join("  ")).join(" | ");

export function showButtons({place, state, running}) {
  const you = place.player === "you";
  $("run").textContent = running ? "Pause" : "Run";
  $("run").disabled = you || state.ended;
  $("step").disabled = you || state.ended;
  $("back").disabled = state.time === 0;
  for (const id of ["wipe", "transplant"]) $(id).disabled = state.ended || you;
  $("change").disabled = state.ended || place.change === null;
  for (const button of $("moves").children) button.disabled = state.ended;
}

function buildBars(box, names) {
  box.replaceChildren(...names.flatMap((name) => {
    const track = element("span", "", "track");
    track.append(element("span", "", "fill"));
    return [element("span", name, "name"), track, element("span", "", "number")];
  }));
}

// Bars from zero; where there are negative numbers, zero is in the middle.
function fillBars(box, values, limit, chosen, text) {
  const signed = values.some((value) => value < 0);
  values.forEach((value, index) => {
    const [label, track, number] = [0, 1, 2].map((part) => box.children[3 * index + part]);
    const share = Math.min(Math.abs(value) / limit, 1) * (signed ? 50 : 100);
    const fill = track.firstChild;
    fill.style.width = `${share}%`;
    fill.style.left = signed ? `${value < 0 ? 50 - share : 50}%` : "0";
    fill.classList.toggle("on", index === chosen);
    label.classList.toggle("chosen", index === chosen);
    number.textContent = text(value, index);
  });
}

// A rollout that has ended keeps what was thought last.
function showPolicy({probabilities, mean, deviation, chosen, ended}) {
  const bars = $("probabilities");
  if (probabilities) {
    fillBars(bars, probabilities, 1, chosen, short);
  } else if (mean) {
    fillBars(bars, mean, 1, -1, (value, n) => `${short(value)} ±${short(deviation[n])}`);
  }
  bars.hidden = !ended && !probabilities && !mean;
  $("no-policy").hidden = !bars.hidden;
}

function showValues(visit) {
  const {place, state} = visit;
  $("values").hidden = !state.values && !state.ended;
  if (!state.values) return;
  visit.largestQ = Math.max(visit.largestQ, ...state.values.map(Math.abs), 1e-6);
  const acting = place.discounts.indexOf(place.acting_discount);
  fillBars($("q"), state.values, visit.largestQ, acting, short);
}

export function showCurve({place, state, history}) {
  const series = [{name: "random play", values: place.random, colour: "--soft", dashed: true,
    smooth: true, width: 1.5}];
  if (place.oracle) {
    series.push({name: "oracle", values: place.oracle, colour: "--good", dashed: true, width: 1.5});
  }
  const played = {...place.returns, [place.player]: history.slice(1).map((row) => row.total)};
  for (const [player, values] of Object.entries(played)) {
    const [name, colour] = PLAYERS[player];
    series.push({name, values, colour, width: player === place.player ? 2.6 : 2});
  }
  charts.lines($("curve"), series, place.horizon, state.experiments.map(([, time]) => time));
  $("legend").replaceChildren(...series.toReversed().map((one) => {
    const item = element("li"), line = element("i", "", one.dashed ? "dashed" : "");
    const now = Math.min(Math.max(state.time, 1), one.values.length) - 1;
    line.style.borderColor = `var(${one.colour})`;
    item.append(line, `${one.name} `, element("b", now < 0 ? "0" : +one.values[now].toFixed(1)));
    item.dataset.player = one.name;
    return item;
  }));
}

// ---------------------------------------------------------------- memory

// Rows of memory, oldest first: those of another lane come before our own.
export function memoryRows({memory, history}) {
  return memory.attention.map((weight, index) => {
    const foreign = index < memory.foreign;
    const time = foreign ? index : memory.start + index - memory.foreign;
    const known = foreign ? undefined : history[time];
    return {weight, foreign, time, first: Boolean(known?.first), paid: known?.reward > 0};
  });
}

export function showStrip(visit) {
  const rows = memoryRows(visit), past = visit.past, strip = $("strip");
  const chosen = past ? rows.findIndex((row) => row.foreign !== past.own && row.time === past.time) : -1;
  charts.strip(strip, rows, chosen);
  strip.dataset.rows = rows.length;
  $("foreign-help").hidden = !rows.some((row) => row.foreign);
  strip.setAttribute("aria-valuemax", Math.max(rows.length - 1, 0));
  if (chosen >= 0) {
    strip.setAttribute("aria-valuenow", chosen);
    strip.setAttribute("aria-valuetext", `step ${rows[chosen].time}, weight ${rows[chosen].weight}`);
  }
}

export function showPast(visit) {
  const {past, history} = visit;
  $("past").hidden = false;
  $("past-frame").hidden = !past.frame;
  if (past.frame) $("past-frame").src = past.frame;
  const then = past.own ? history[past.time]?.action : null;
  $("past-text").textContent = [
    past.own ? `Step ${past.time} of this rollout` : `Step ${past.time} of another lane's world`,
    past.first ? "a trial began here" : "",
    `it saw ${describe(past.obs)}`,
    `the step before it paid ${past.reward}`,
    then ? `then: ${then}` : "",
  ].filter(Boolean).join("\n");
  showStrip(visit);
}

export function showParsed(reply) {
  if (reply.text !== $("instruction").value) return;
  const goals = reply.goals.map((goal, number) => `${number + 1}. ${goal}`).join("  ");
  $("parsed").textContent = reply.message || `understood: ${goals}`;
  $("parsed").classList.toggle("bad", Boolean(reply.message));
}
