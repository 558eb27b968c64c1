"use strict";

// A page that says so is fetched again after a while, and its main part takes the place of the one that is shown. What
// the reader has opened, chosen or written there stays. Without this script, the page loads itself anew.
(() => {
  const main = () => document.getElementById("main");
  let failures = 0;

  const busy = () => {
    const chosen = document.getSelection();
    const at = document.activeElement;
    return document.hidden || chosen && !chosen.isCollapsed || at && at.matches("main input");
  };

  const replace = (fresh) => {
    const old = main();
    const open = new Set([...old.querySelectorAll("details[open]")].map((d) => d.id));
    for (const d of fresh.querySelectorAll("details")) d.open = open.has(d.id);
    const scrolled = [...old.querySelectorAll(".wide")].map((w) => [w.scrollLeft, w.scrollTop]);
    const focused = document.activeElement;
    const address = old.contains(focused) && focused.getAttribute("href");
    const summary = old.contains(focused) && focused.tagName === "SUMMARY" && focused.parentElement.id;
    old.replaceWith(fresh);
    [...fresh.querySelectorAll(".wide")].forEach((w, i) => {
      if (scrolled[i]) [w.scrollLeft, w.scrollTop] = scrolled[i];
    });
    const again = address ? [...fresh.querySelectorAll("a")].find((a) => a.getAttribute("href") === address)
      : summary && fresh.ownerDocument.getElementById(summary)?.querySelector("summary");
    again?.focus({ preventScroll: true });
  };

  const tell = (text) => {
    const live = document.getElementById("live");
    if (live.textContent !== text) live.textContent = text;
  };

  const look = async () => {
    if (busy()) return wait();
    try {
      const answer = await fetch(location.href, { headers: { "X-Console-Live": "1" }, redirect: "error" });
      if (answer.status === 401) return location.reload();
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("main");
      failures = 0;
      if (busy()) return wait();
      replace(document.adoptNode(fresh));
      document.querySelector("footer p:last-child").textContent = page.querySelector("footer p:last-child").textContent;
      tell(fresh.dataset.summary || "");
    } catch {
      failures++;
      tell("The service does not answer; this page is not up to date.");
    }
    wait();
  };

  const wait = () => {
    const seconds = Number(main().dataset.refresh);
    if (seconds) setTimeout(look, 1000 * Math.min(60, seconds * 2 ** failures));
  };

  wait();
})();
