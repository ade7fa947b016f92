"use strict";
// All text is inserted as text, never as markup: it is untrusted.
const place = name => document.getElementById(name);
const percent = share => `${Math.round(100 * share)} %`;
const clock = seconds => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

function list(name, likely) {
  const lines = likely.map(one => `${one.keystep} (${percent(one.probability)})`);
  place(name).replaceChildren(...(lines.length ? lines : ["none"]).map(text => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
}

const events = new EventSource("events");
events.onmessage = event => {
  const state = JSON.parse(event.data);
  place("task").textContent = state.task === null ? "Waiting for the task …"
    : `${state.task} (${percent(state.tasks[state.task])})`;
  place("keystep").textContent = state.keystep === null ? "–" : state.keystep;
  place("progress").value = state.progress;
  list("next", state.next);
  list("missing", state.missing);
  place("when").textContent = `at ${clock(state.at)}, transcript until ${clock(state.now)}`;
};
events.onerror = () => { place("when").textContent = "Disconnected: stepgraph live was stopped."; };
events.addEventListener("end", () => {
  events.close();
  place("when").textContent += ", finished";
});
