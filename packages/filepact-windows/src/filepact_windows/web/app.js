// The frame of the review within a chat: it shows, and has the person asked. It decides nothing.
"use strict";

const card = document.querySelector("#card");
const said = document.querySelector("#said");
const open = new Map();
const unmarked = new Set();
let last = 0;
let change = "";
let calls = false;

const send = (message) => window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
const tell = (method, params) => send({ method, params });
const ask = (method, params) =>
  new Promise((done, failed) => {
    last += 1;
    open.set(last, { done, failed });
    send({ id: last, method, params });
  });
const call = (name, given) => ask("tools/call", { name, arguments: given });
const words = (result) =>
  (result.content ?? []).filter((one) => one.type === "text").map((one) => one.text).join("\n");

const show = async (wanted, page = 1) => {
  if (wanted !== change) unmarked.clear();
  change = wanted;
  if (!calls) {
    said.textContent = `${wanted} waits: filepact review shows it.`;
    return;
  }
  const result = await call("review_show", { change: wanted, page });
  const facts = result.structuredContent;
  if (result.isError || typeof facts?.html !== "string") {
    said.textContent = words(result);
    return;
  }
  change = facts.change;
  card.innerHTML = facts.html;
  document.body.dataset.waits = facts.waits;
  for (const box of card.querySelectorAll(".mark")) box.checked = !unmarked.has(box.value);
  said.textContent = facts.waits ? "Nothing of this is done yet." : "";
  card.querySelector("#answer")?.addEventListener("click", answer);
  for (const button of card.querySelectorAll(".turn")) {
    button.addEventListener("click", () => attempt(() => show(change, Number(button.value))));
  }
  for (const box of card.querySelectorAll(".mark")) {
    box.addEventListener("change", () => unmarked[box.checked ? "delete" : "add"](box.value));
  }
};

const answer = () =>
  attempt(async () => {
    const button = card.querySelector("#answer");
    button.disabled = true;
    said.textContent = "Your chat asks you now: what you say there counts.";
    const given = { change };
    if (unmarked.size) given.hunks = marked();
    const result = await call("review_answer", given);
    await show(result._meta?.["filepact/receipt"]?.waits ?? change);
    said.textContent = words(result).split("\n")[0];
  });
// Those of pages that were not looked at are marked as well, as all are in the beginning.
const marked = () => {
  const total = Number(card.querySelector(".hunk .head")?.textContent.match(/of (\d+)/)?.[1] ?? 0);
  const kept = [];
  for (let number = 1; number <= total; number += 1) {
    if (!unmarked.has(String(number))) kept.push(number);
  }
  return kept.join(",");
};

const attempt = async (work) => {
  try {
    await work();
  } catch (problem) {
    said.textContent = problem.message;
    const button = card.querySelector("#answer");
    if (button) button.disabled = false;
  }
};

const dress = (context) => {
  if (context?.theme) document.documentElement.style.colorScheme = context.theme;
};
const heard = {
  "ui/notifications/tool-result": (result) => {
    const receipt = result._meta?.["filepact/receipt"];
    if (receipt?.status === "pending" && receipt.operation) attempt(() => show(receipt.operation));
    else said.textContent = words(result).split("\n")[0];
  },
  "ui/notifications/tool-cancelled": () => {
    said.textContent = "The call was given up.";
  },
  "ui/notifications/host-context-changed": dress,
};
const asked = { ping: {}, "ui/resource-teardown": {} };

window.addEventListener("message", (event) => {
  const message = event.data;
  if (event.source !== window.parent || message?.jsonrpc !== "2.0") return;
  if (message.method === undefined) {
    const waiting = open.get(message.id);
    open.delete(message.id);
    if (message.error) waiting?.failed(new Error(message.error.message));
    else waiting?.done(message.result);
  } else if (message.id === undefined) {
    heard[message.method]?.(message.params);
  } else if (message.method in asked) {
    send({ id: message.id, result: asked[message.method] });
  } else {
    send({ id: message.id, error: { code: -32601, message: "Method not found" } });
  }
});

attempt(async () => {
  const host = await ask("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name: "filepact review", version: "1" },
    appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
  });
  calls = host.hostCapabilities?.serverTools !== undefined;
  dress(host.hostContext);
  tell("ui/notifications/initialized", {});
  new ResizeObserver(() => {
    const { width, height } = document.documentElement.getBoundingClientRect();
    tell("ui/notifications/size-changed", { width: Math.ceil(width), height: Math.ceil(height) });
  }).observe(document.documentElement);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && change) attempt(() => show(change));
  });
  document.body.dataset.ready = "yes";
});
