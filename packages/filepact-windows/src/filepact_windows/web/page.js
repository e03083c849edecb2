// Keys, and news while a page is open. Everything works without it, by links and buttons.
"use strict";

const kind = document.body.dataset.kind;
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const one = (selector, within = document) => within.querySelector(selector);
const press = (element) => {
  if (element && !element.disabled) element.click();
};

const hunks = () => all(kind === "inbox" || kind === "log" ? "table.list a.go" : ".hunk[tabindex]");
const current = () => {
  const active = document.activeElement;
  return hunks().find((part) => part === active || part.contains(active));
};
const step = (by) => {
  const some = hunks();
  const next = some[some.indexOf(current()) + by] ?? (by > 0 ? some.at(-1) : some[0]);
  if (!next) return;
  next.closest("details")?.setAttribute("open", "");
  next.focus();
  next.scrollIntoView({ block: next.matches(".hunk") ? "start" : "nearest" });
};
const proposal = () => current()?.closest("article") ?? one("article") ?? document;
const part = () => current() ?? hunks()[0];
// Where there is but one hunk, or one file, the proposal's own buttons are about it.
const choose = (selector, place) =>
  press((place && one(selector, place)) ?? one(selector.replace(/^\.[a-z]+/, ".all"), proposal()));
const go = (selector) => () => press(one(selector, proposal()) ?? one(selector));
const unfolds = (fold) => fold?.matches(".fold") && one("a", fold);
const beside = (by) => () => {
  const some = all("#side .entry");
  press(some[some.findIndex((entry) => entry.classList.contains("here")) + by]);
};
const keys = {
  j: () => step(1),
  k: () => step(-1),
  y: () => choose(".hunk-yes", part()),
  n: () => choose(".hunk-no", part()),
  a: () => choose(".file-yes", part()?.closest("details")),
  d: () => choose(".file-no", part()?.closest("details")),
  A: go(".all-yes"),
  D: go(".all-no"),
  c: () => one(".reason", proposal())?.focus(),
  e: () => press(one("a.edit", part()?.closest("details") ?? proposal())),
  s: go("a.split"),
  v: go("a.view"),
  f: () => {
    const folded = part()?.closest("details");
    if (folded) folded.open = !folded.open;
  },
  x: () => press(unfolds(part()?.previousElementSibling)),
  X: () => press(unfolds(part()?.nextElementSibling)),
  J: beside(1),
  K: beside(-1),
  o: () => press(part()),
  g: () => press(one("#inbox")),
  t: go("a.turn"),
  l: () => press(one("#timeline")),
  u: () => press(one("#undo")),
  U: () => press(one("#redo")),
  "?": () => one("#keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  const field = event.target.matches("input, textarea");
  if (event.key === "Escape" && field) event.target.blur();
  if (field || event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
  const act = keys[event.key];
  if (!act || event.repeat && !"jk".includes(event.key)) return;
  event.preventDefault();
  act();
});

const help = one("#help");
help.hidden = false;
help.addEventListener("click", keys["?"]);

const mark = () => {
  const here = one("form.proposal")?.dataset.id;
  for (const entry of all("#side .entry")) {
    entry.classList.toggle("here", entry.dataset.id === here);
    if (entry.dataset.id === here) entry.setAttribute("aria-current", "page");
  }
};
mark();
if (kind === "proposal") hunks()[0]?.focus({ preventScroll: true });

// What language servers find takes its time, so it comes into the page.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a.ask");
  const place = link && one(".found", link.closest("article"));
  if (!place) return;
  event.preventDefault();
  place.hidden = false;
  place.textContent = "…";
  const answer = await fetch(`${link.getAttribute("href")}?part=1`);
  place.replaceChildren(...parsed(await answer.text()).body.childNodes);
});

// Lines between hunks come into the page, which stays where it is; without this the link shows them as well.
document.addEventListener("click", async (event) => {
  const fold = event.target.closest(".fold > a")?.parentElement;
  if (!fold || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const answer = await fetch(one("a", fold).getAttribute("href"));
  const now = answer.ok && parsed(await answer.text()).getElementById(one("a", fold).hash.slice(1));
  if (!now) return;
  if (!fold.id) now.removeAttribute("id");
  const had = fold.contains(document.activeElement);
  fold.replaceWith(now);
  if (had) one("a", now).focus();
});

const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

// The list beside the page is kept as it is; the page itself stays as the person sees it, for that is what they decide about.
const refresh = async () => {
  const answer = await fetch("/?part=1");
  if (!answer.ok) return;
  const now = parsed(await answer.text());
  for (const selector of kind === "inbox" ? ["#side", "#count", "main"] : ["#side", "#count"]) {
    const at = hunks().indexOf(current());
    one(selector).replaceWith(one(selector, now));
    if (selector === "main" && at >= 0) hunks()[Math.min(at, hunks().length - 1)]?.focus();
  }
  document.title = document.title.replace(/^(\(\d+\) )?/, now.title.match(/^\(\d+\) /)?.[0] ?? "");
  mark();
};
const tell = (text) => {
  const news = one("#news");
  if (!news) return;
  news.textContent = text;
  news.hidden = false;
};
const listen = async () => {
  let seen = document.body.dataset.version;
  for (;;) {
    try {
      const answer = await fetch(`/wait?seen=${seen}`);
      const news = await answer.json();
      if (news.ended) return tell("The review has ended.");
      if (news.version === seen) {
        await new Promise((after) => setTimeout(after, 500));
        continue;
      }
      seen = news.version;
      document.body.dataset.version = seen;
      await refresh();
      const here = one("form.proposal")?.dataset.id;
      if (kind === "proposal" && here && !news.waiting.includes(here)) {
        tell("This no longer waits: somebody has decided, or another change replaces it. (g)");
      }
    } catch {
      return tell("The review has ended, or this page was closed for too long.");
    }
  }
};
listen();
document.body.dataset.ready = "yes";
