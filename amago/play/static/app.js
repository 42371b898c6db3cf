// The page: asks the server for one step at a time and shows what it answers.
"use strict";

const $ = (id) => document.getElementById(id);
const SPEEDS = [1, 2, 5, 10, 20, 30, 60];
const SESSION_ENDS = {4000: "Nothing was asked for a while, so the session has ended.",
  4001: "All sessions of this server are in use.", 4002: "The server understood too little of this page."};

let agents = [];
let socket = null;
let place = null;            // what the server said when the session began
let state = null;            // the newest row
let history = [];            // {reward, first, action} per step of this rollout
let running = false;
let waiting = false;         // a request is on its way
let queued = [];             // what a person asked for meanwhile, at most one request of a kind
let timer = 0;
let asked = 0;               // when the last step was asked for
let stepTimes = [];
let chosenRow = null;        // {own, time} of the past step that is shown
let largestQ = 0;
let memory = {attention: [], foreign: 0, start: 0};  // of the newest row that was thought about

// ---------------------------------------------------------------- talking to the server

function connect() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  socket = new WebSocket(`${scheme}://${location.host}/session`);
  socket.onopen = () => beginHere();
  socket.onmessage = (event) => receive(JSON.parse(event.data));
  socket.onclose = (event) => {
    pause();
    waiting = false;
    queued = [];
    $("gone-text").textContent = SESSION_ENDS[event.code] || "The connection to the server is gone.";
    if (!$("gone").open) $("gone").showModal();
  };
}

function send(request) {
  if (!socket || socket.readyState !== WebSocket.OPEN) return;
  if (waiting) { queued = [...queued.filter((one) => one.type !== request.type), request]; return; }
  waiting = true;
  socket.send(JSON.stringify(request));
}

function receive(reply) {
  waiting = false;
  if (reply.type === "began") began(reply);
  else if (reply.type === "state") arrived(reply);
  else if (reply.type === "row") showPast(reply);
  else if (reply.type === "parsed") showParsed(reply);
  else failed(reply);
  if (queued.length) send(queued.shift());
  else schedule();
}

function failed(reply) {
  pause();
  if (place) document.querySelector(`input[name=player][value=${place.player}]`).checked = true;
  say(reply.message, true);
}

function say(text, bad = false) {
  $("message").textContent = text;
  $("message").classList.toggle("bad", bad);
}

// ---------------------------------------------------------------- beginning

function beginHere(changes = {}) {
  if (!agents.length) return;  // the list of agents is still on its way
  pause();
  const you = document.querySelector("input[name=player]:checked").value === "you";
  send({type: "begin", agent: $("agent").value, seed: Math.max(0, Math.floor(+$("seed").value || 0)),
    player: you ? "you" : "agent", instruction: "", dark: $("dark").checked, ...changes});
}

function began(reply) {
  place = reply;
  history = [];
  chosenRow = null;
  largestQ = 0;
  memory = {attention: [], foreign: 0, start: 0};
  say(reply.player === "you" ? `Your turn: ${reply.moves.map((m) => keyName(m.key)).join(" ")}` : "");
  $("environment").textContent = reply.environment.replace(/^amago\//, "").replace(/-v\d+$/, "");
  $("horizon").textContent = reply.horizon;
  $("policy-title").textContent = reply.player === "you" ? "What it would do in your place" : "What it will do";
  $("dark-choice").hidden = !reply.can_be_dark;
  const yours = document.querySelector("input[name=player][value=you]");
  yours.disabled = reply.moves.length === 0;
  document.querySelector(`input[name=player][value=${reply.player}]`).checked = true;
  $("asking").hidden = reply.goals === null;
  document.querySelector("main").classList.toggle("asks", reply.goals !== null);
  $("goal-help").textContent = reply.goals || "";
  $("parsed").textContent = "";
  $("change").disabled = reply.change === null;
  $("change-hint").textContent = reply.change === null
    ? "This world cannot be changed under the agent." : `Changing the world: ${reply.change}.`;
  $("past").hidden = true;
  buildHeads(reply);
  buildMoves(reply);
  buildBars($("probabilities"), reply.actions);
  buildBars($("q"), reply.discounts.map((discount) => `γ ${discount}`));
  showCard();
  arrived(reply.state);
}

function buildHeads(reply) {
  const options = [new Option("all heads", "-1,-1")];
  for (let layer = 0; layer < reply.layers; layer++)
    for (let head = 0; head < reply.heads; head++)
      options.push(new Option(`layer ${layer + 1}, head ${head + 1}`, `${layer},${head}`));
  $("head").replaceChildren(...options);
  $("attention").hidden = reply.layers === 0;
}

function buildMoves(reply) {
  $("moves").hidden = reply.player !== "you";
  $("moves").replaceChildren(...reply.moves.map((move, index) => {
    const button = document.createElement("button");
    button.textContent = move.name;
    const key = document.createElement("kbd");
    key.textContent = keyName(move.key);
    button.append(key);
    button.onclick = () => play(index);
    return button;
  }));
}

const keyName = (key) => ({ArrowLeft: "←", ArrowUp: "↑", ArrowRight: "→", ArrowDown: "↓"})[key] || key;

function showCard() {
  const about = agents.find((one) => one.key === place.agent);
  const rows = [["environment", `${about.environment} ${Object.entries(about.arguments).map(([k, v]) => `${k}=${v}`).join(" ")}`],
    ["memory", about.memory]];
  if (about.score !== null) rows.push(["return", `${about.score} on unseen worlds; random play ${about.random}`]);
  if (about.command) rows.push(["command", about.command]);
  if (about.limits.length) rows.push(["limits", about.limits.join("; ")]);
  $("card").replaceChildren(...rows.flatMap(([name, value]) => {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = name; dd.textContent = value;
    return [dt, dd];
  }));
}

// ---------------------------------------------------------------- a new row

function arrived(reply) {
  const before = state;
  state = reply;
  if (before && before.chosen !== null && history[before.time]) history[before.time].action ??= before.chosen;
  history.length = Math.min(history.length, reply.time);
  history[reply.time] = {reward: reply.reward, first: reply.first, action: null, total: reply.total};
  if (reply.attention) memory = reply;
  if (reply.frame) $("frame").src = `data:image/png;base64,${reply.frame}`;
  $("stage").classList.toggle("empty", !reply.frame);
  $("time").textContent = reply.time;
  $("total").textContent = +reply.total.toFixed(2);
  const trials = history.filter((row) => row.first).length;
  $("trial").textContent = trials > 1 ? `trial ${trials}` : "";
  $("obs").textContent = describe(reply.obs);
  showGoals();
  showPolicy();
  showValues();
  showCurve();
  showStrip();
  showLog();
  showButtons();
  showRate();
  if (reply.ended && running) pause();
  if (reply.ended) say(`The rollout has ended with a return of ${+reply.total.toFixed(2)}. `
    + (place.player === "agent" && place.moves.length ? "Play the same world yourself, or go to the next." : ""));
}

const describe = (obs) => Object.values(obs).map((numbers) => numbers.join("  ")).join(" | ");

function buildBars(box, names) {
  box.replaceChildren(...names.flatMap((name) => {
    const label = document.createElement("span"), track = document.createElement("span");
    const fill = document.createElement("span"), number = document.createElement("span");
    label.className = "name"; track.className = "track"; fill.className = "fill"; number.className = "number";
    label.textContent = name;
    track.append(fill);
    return [label, track, number];
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

function showPolicy() {
  const bars = $("probabilities");
  if (state.probabilities) {
    fillBars(bars, state.probabilities, 1, state.chosen, (value) => value.toFixed(2));
  } else if (state.mean) {
    fillBars(bars, state.mean, 1, -1,
      (value, index) => `${value.toFixed(2)} ±${state.deviation[index].toFixed(2)}`);
  }
}

function showValues() {
  $("values").hidden = !state.values && !state.ended;
  if (!state.values) return;
  largestQ = Math.max(largestQ, ...state.values.map(Math.abs), 1e-6);
  const acting = place.discounts.indexOf(place.acting_discount);
  fillBars($("q"), state.values, largestQ, acting, (value) => value.toFixed(2));
}

function showCurve() {
  const now = history.slice(1).map((row) => row.total);
  const series = [{name: "random play", values: place.random, colour: "--soft", dashed: true, smooth: true, width: 1.5}];
  if (place.oracle) series.push({name: "oracle", values: place.oracle, colour: "--good", dashed: true, width: 1.5});
  const names = {agent: ["agent", "--accent"], you: ["you", "--you"]};
  for (const [player, values] of Object.entries(place.returns))
    if (values.length) series.push({name: names[player][0], values, colour: names[player][1], width: 2});
  series.push({name: names[place.player][0], values: now, colour: names[place.player][1], width: 2.6});
  Charts.lines($("curve"), series, place.horizon, state.experiments.map(([, time]) => time));
  $("legend").replaceChildren(...series.toReversed().map((one) => {
    const item = document.createElement("li"), line = document.createElement("i"), total = document.createElement("b");
    line.style.borderColor = `var(${one.colour})`;
    line.classList.toggle("dashed", Boolean(one.dashed));
    total.textContent = one.values.length ? +one.values[Math.min(Math.max(state.time, 1), one.values.length) - 1].toFixed(1) : 0;
    item.append(line, `${one.name} `, total);
    item.dataset.player = one.name;
    return item;
  }));
}

// Rows of memory, oldest first: those of another lane come before our own.
function memoryRows() {
  return memory.attention.map((weight, index) => {
    const foreign = index < memory.foreign, time = foreign ? index : memory.start + index - memory.foreign;
    const known = foreign ? null : history[time];
    return {weight, foreign, time, first: Boolean(known && known.first), paid: Boolean(known && known.reward > 0)};
  });
}

function showStrip() {
  const rows = memoryRows();
  const chosen = chosenRow ? rows.findIndex((row) => row.foreign === !chosenRow.own && row.time === chosenRow.time) : -1;
  Charts.strip($("strip"), rows, chosen);
  $("strip").dataset.rows = rows.length;
  $("strip").setAttribute("aria-valuemax", Math.max(rows.length - 1, 0));
  if (chosen >= 0) {
    $("strip").setAttribute("aria-valuenow", chosen);
    $("strip").setAttribute("aria-valuetext", `step ${rows[chosen].time}, weight ${rows[chosen].weight}`);
  }
}

function lookAt(index) {
  const count = memoryRows().length;
  if (count) send({type: "look", index: Math.min(Math.max(index, 0), count - 1)});
}

function showPast(row) {
  chosenRow = row;
  $("past").hidden = false;
  $("past-frame").hidden = !row.frame;
  if (row.frame) $("past-frame").src = `data:image/png;base64,${row.frame}`;
  const then = row.own && history[row.time] ? history[row.time].action : null;
  $("past-text").textContent = [
    row.own ? `Step ${row.time} of this rollout` : `Step ${row.time} of another lane's world`,
    row.first ? "a trial began here" : "",
    `it saw ${describe(row.obs)}`,
    `the step before it paid ${row.reward}`,
    then === null ? "" : `then it went ${place.actions[then]}`,
  ].filter(Boolean).join("\n");
  showStrip();
}

function showLog() {
  const texts = {wipe: "its memory was wiped", change: `the world changed: ${place.change}`,
    transplant: "it was given another lane's memory"};
  $("log").replaceChildren(...state.experiments.map(([kind, time]) => {
    const item = document.createElement("li");
    item.textContent = `step ${time}: ${texts[kind]}`;
    return item;
  }));
}

function showGoals() {
  $("asked").replaceChildren(...state.asked.map(([text, done]) => {
    const item = document.createElement("li");
    item.textContent = text;
    item.classList.toggle("done", done);
    return item;
  }));
}

function showParsed(reply) {
  if (reply.text !== $("instruction").value) return;
  $("parsed").textContent = reply.message || `understood: ${reply.goals.map((goal, n) => `${n + 1}. ${goal}`).join("  ")}`;
  $("parsed").classList.toggle("bad", Boolean(reply.message));
}

function showButtons() {
  const you = place.player === "you";
  $("run").textContent = running ? "Pause" : "Run";
  $("run").disabled = you || state.ended;
  $("step").disabled = you || state.ended;
  $("back").disabled = state.time === 0;
  for (const id of ["wipe", "transplant"]) $(id).disabled = state.ended || you;
  $("change").disabled = state.ended || place.change === null;
  for (const button of $("moves").children) button.disabled = state.ended;
}

// ---------------------------------------------------------------- running

function start() {
  if (!state || state.ended || place.player === "you") return;
  running = true;
  stepTimes = [];
  say("");
  showButtons();
  schedule();
}

function pause() {
  running = false;
  clearTimeout(timer);
  $("rate").textContent = "";
  if (state) showButtons();
}

function schedule() {
  clearTimeout(timer);
  if (!running || waiting) return;
  const due = asked + 1000 / SPEEDS[+$("speed").value] - performance.now();
  timer = setTimeout(step, Math.max(0, due));
}

function step() {
  asked = Math.max(performance.now() - 100, asked + 1000 / SPEEDS[+$("speed").value]);
  if (asked > performance.now()) asked = performance.now();
  send({type: "step"});
}

function play(move) {
  if (place && place.player === "you" && !state.ended) send({type: "move", move});
}

function showRate() {
  if (!running) return;
  stepTimes.push(performance.now());
  stepTimes = stepTimes.slice(-31);
  const seconds = (stepTimes.at(-1) - stepTimes[0]) / 1000;
  if (stepTimes.length > 5) $("rate").textContent = `${((stepTimes.length - 1) / seconds).toFixed(0)} steps/s`;
}

// ---------------------------------------------------------------- what people do

function listen() {
  $("setup").onsubmit = (event) => { event.preventDefault(); beginHere(); };
  $("agent").onchange = () => beginHere();
  $("seed").onchange = () => beginHere();
  $("dark").onchange = () => beginHere({instruction: currentInstruction()});
  $("next-world").onclick = () => { $("seed").value = +$("seed").value + 1; beginHere(); };
  for (const radio of document.querySelectorAll("input[name=player]"))
    radio.onchange = () => {
      $("stage").focus();  // or the arrow keys would go on choosing players
      $("dark").checked = radio.value === "you" && place.can_be_dark;  // a fair match
      beginHere({instruction: currentInstruction()});
    };
  $("again").onclick = () => beginHere({instruction: currentInstruction()});
  $("run").onclick = () => (running ? pause() : start());
  $("step").onclick = () => { pause(); send({type: "step"}); };
  $("back").onclick = () => { pause(); send({type: "back"}); };
  $("speed").oninput = () => { $("speed-value").textContent = `${SPEEDS[+$("speed").value]}/s`; schedule(); };
  for (const kind of ["wipe", "change", "transplant"]) $(kind).onclick = () => send({type: kind});
  $("head").onchange = () => {
    const [layer, head] = $("head").value.split(",").map(Number);
    send({type: "head", layer, head});
  };
  $("strip").onclick = (event) => {
    const index = Charts.rowAt($("strip"), memoryRows().length, event.clientX);
    if (index >= 0) lookAt(index);
  };
  $("strip").onkeydown = (event) => {
    const at = +$("strip").getAttribute("aria-valuenow"), last = memoryRows().length - 1;
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    lookAt(to);
  };
  $("instruction").oninput = () => {
    $("parsed").textContent = "";
    if ($("instruction").value.trim()) send({type: "parse", text: $("instruction").value});
  };
  $("ask").onsubmit = (event) => {
    event.preventDefault();
    beginHere({instruction: $("instruction").value.trim()});
  };
  $("reconnect").onclick = () => { $("gone").close(); connect(); };
  document.addEventListener("keydown", shortcut);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.addEventListener("resize", redraw);
}

const currentInstruction = () => (place && place.goals !== null && place.asked_for) || "";

function redraw() {
  if (state) { showCurve(); showStrip(); }
}

function shortcut(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !place) return;
  if (event.target.matches("input:not([type=radio]):not([type=checkbox]), select, #strip")) return;
  const move = place.moves.findIndex((one) => one.key.toLowerCase() === event.key.toLowerCase());
  if (place.player === "you" && move >= 0) play(move);
  else if (event.key === " " && !event.target.matches("button, input, a")) running ? pause() : start();
  else if (event.key === "n" && place.player === "agent" && !state.ended) { pause(); send({type: "step"}); }
  else if (event.key === "b" && state.time > 0) { pause(); send({type: "back"}); }
  else return;
  event.preventDefault();
}

async function main() {
  listen();
  connect();
  agents = await (await fetch("agents")).json();
  const wanted = new URLSearchParams(location.search);
  $("agent").replaceChildren(...agents.map((one) => new Option(one.key, one.key, one.default, one.default)));
  if (agents.some((one) => one.key === wanted.get("agent"))) $("agent").value = wanted.get("agent");
  if (/^\d{1,9}$/.test(wanted.get("world") || "")) $("seed").value = wanted.get("world");
  beginHere();
}

main();
