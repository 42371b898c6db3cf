// The page's controls: asks the server for one step at a time and hands the answers to panels.js.

import {rowAt} from "./charts.js";
import {Connection} from "./connection.js";
import {$, keyName, memoryRows, say, showButtons, showCurve, showParsed, showPast, showPlace,
  showPlayer, showStep, showStrip} from "./panels.js";

const SPEEDS = [1, 2, 5, 10, 20, 30, 60];

let agents = [];
let connection = null;
let visit = null;   // what is shown: see began()
let timer = 0;
let asked = 0;      // when the last step was asked for
let arrivals = [];  // when the last steps came

// ---------------------------------------------------------------- beginning

function connect() {
  connection = new Connection({
    onOpen: () => begin(),
    onReply: receive,
    onIdle: schedule,
    onEnd: (text) => {
      pause();
      $("gone-text").textContent = text;
      if (!$("gone").open) $("gone").showModal();
    },
  });
}

function begin(changes = {}) {
  if (!agents.length) return;  // the list of agents is still on its way
  pause();
  const player = document.querySelector("input[name=player]:checked").value;
  const seed = Math.max(0, Math.floor(+$("seed").value || 0));
  connection.send({type: "begin", agent: $("agent").value, seed, player, instruction: "",
    dark: $("dark").checked, ...changes});
}

// The same world, asked for the same.
const beginAgain = () => begin({instruction: visit?.place.asked_for || ""});

function began(place) {
  visit = {
    place,
    state: place.state,
    history: [],      // {reward, first, total, action} per row of this rollout
    memory: {attention: [], foreign: 0, start: 0},  // of the newest row that was thought about
    past: null,       // the past row that is shown
    move: null,       // what the person did last
    largestQ: 0,
    running: false,
  };
  const keys = place.moves.map((move) => keyName(move.key)).join(" ");
  say(place.player === "you" ? `Your turn: ${keys}` : "");
  showPlace(place, agents.find((one) => one.key === place.agent), play);
  arrived(place.state);
}

// ---------------------------------------------------------------- answers

function receive(reply) {
  if (reply.type === "began") began(reply);
  else if (reply.type === "state") {
    Object.assign(visit.place, reply.others || {});  // the world has changed, or changed back
    arrived(reply);
  }
  else if (reply.type === "row") { visit.past = reply; showPast(visit); }
  else if (reply.type === "parsed") showParsed(reply);
  else failed(reply);
}

function failed(reply) {
  pause();
  if (visit) showPlayer(visit.place);
  say(reply.message, true);
}

function arrived(state) {
  const {history, place} = visit, before = visit.state;
  if (history[before.time]) history[before.time].action ??= visit.move ?? place.actions[before.chosen];
  history.length = Math.min(history.length, state.time);
  history[state.time] = {reward: state.reward, first: state.first, total: state.total, action: null};
  visit.state = state;
  if (state.attention) visit.memory = state;
  showStep(visit);
  showRate();
  if (!state.ended) return;
  pause();
  const more = place.player === "agent" && place.moves.length
    ? " Play the same world yourself, or go to the next." : "";
  say(`The rollout has ended with a return of ${+state.total.toFixed(2)}.${more}`);
}

// ---------------------------------------------------------------- running

function start() {
  if (!visit || visit.state.ended || visit.place.player === "you") return;
  visit.running = true;
  arrivals = [];
  say("");
  showButtons(visit);
  schedule();
}

function pause() {
  clearTimeout(timer);
  $("rate").textContent = "";
  if (!visit) return;
  visit.running = false;
  showButtons(visit);
}

const interval = () => 1000 / SPEEDS[+$("speed").value];

function schedule() {
  clearTimeout(timer);
  if (!visit?.running || connection.waiting) return;
  timer = setTimeout(step, Math.max(0, asked + interval() - performance.now()));
}

function step() {
  // Late steps are caught up with, but not by more than a tenth of a second.
  asked = Math.min(performance.now(), Math.max(performance.now() - 100, asked + interval()));
  connection.send({type: "step"});
}

function stepOnce() {
  pause();
  connection.send({type: "step"});
}

function stepBack() {
  pause();
  connection.send({type: "back"});
}

function play(move) {
  if (visit?.place.player !== "you" || visit.state.ended) return;
  visit.move = visit.place.moves[move].name;
  connection.send({type: "move", move});
}

function showRate() {
  if (!visit.running) return;
  arrivals = [...arrivals, performance.now()].slice(-31);
  const seconds = (arrivals.at(-1) - arrivals[0]) / 1000;
  if (arrivals.length > 5) {
    $("rate").textContent = `${((arrivals.length - 1) / seconds).toFixed(0)} steps/s`;
  }
}

// ---------------------------------------------------------------- what people do

function lookAt(index) {
  const count = memoryRows(visit).length;
  if (count) connection.send({type: "look", index: Math.min(Math.max(index, 0), count - 1)});
}

function listenToSetup() {
  $("setup").onsubmit = (event) => { event.preventDefault(); begin(); };
  $("agent").onchange = () => begin();
  $("seed").onchange = () => begin();
  $("dark").onchange = beginAgain;
  $("next-world").onclick = () => { $("seed").value = +$("seed").value + 1; begin(); };
  for (const radio of document.querySelectorAll("input[name=player]")) {
    radio.onchange = () => {
      $("stage").focus();  // or the arrow keys would go on choosing players
      $("dark").checked = radio.value === "you" && visit.place.can_be_dark;  // a fair match
      beginAgain();
    };
  }
  $("instruction").oninput = () => {
    $("parsed").textContent = "";
    const text = $("instruction").value;
    if (text.trim()) connection.send({type: "parse", text});
  };
  $("ask").onsubmit = (event) => {
    event.preventDefault();
    begin({instruction: $("instruction").value.trim()});
  };
}

function listenToPlay() {
  $("again").onclick = beginAgain;
  $("run").onclick = () => (visit?.running ? pause() : start());
  $("step").onclick = stepOnce;
  $("back").onclick = stepBack;
  $("speed").oninput = () => {
    $("speed-value").textContent = `${SPEEDS[+$("speed").value]}/s`;
    schedule();
  };
  for (const kind of ["wipe", "change", "transplant"]) {
    $(kind).onclick = () => connection.send({type: kind});
  }
  $("head").onchange = () => {
    const [layer, head] = $("head").value.split(",").map(Number);
    connection.send({type: "head", layer, head});
  };
  $("strip").onclick = (event) => {
    const index = rowAt($("strip"), memoryRows(visit).length, event.clientX);
    if (index >= 0) lookAt(index);
  };
  $("strip").onkeydown = (event) => {
    const at = +$("strip").getAttribute("aria-valuenow"), last = memoryRows(visit).length - 1;
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    lookAt(to);
  };
}

function shortcut(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !visit) return;
  if (event.target.matches("input:not([type=radio]):not([type=checkbox]), select, #strip")) return;
  const {place, state} = visit, key = event.key.toLowerCase();
  const move = place.moves.findIndex((one) => one.key.toLowerCase() === key);
  if (place.player === "you" && move >= 0) play(move);
  else if (key === " " && !event.target.matches("button, input, a")) visit.running ? pause() : start();
  else if (key === "n" && place.player === "agent" && !state.ended) stepOnce();
  else if (key === "b" && state.time > 0) stepBack();
  else return;
  event.preventDefault();
}

function redraw() {
  if (visit) { showCurve(visit); showStrip(visit); }
}

async function main() {
  listenToSetup();
  listenToPlay();
  $("reconnect").onclick = () => { $("gone").close(); connect(); };
  document.addEventListener("keydown", shortcut);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.addEventListener("resize", redraw);
  connect();
  agents = await (await fetch("agents")).json();
  const wanted = new URLSearchParams(location.search);
  $("agent").replaceChildren(
    ...agents.map((one) => new Option(one.key, one.key, one.default, one.default)));
  if (agents.some((one) => one.key === wanted.get("agent"))) $("agent").value = wanted.get("agent");
  if (/^\d{1,9}$/.test(wanted.get("world") || "")) $("seed").value = wanted.get("world");
  begin();
}

main();
