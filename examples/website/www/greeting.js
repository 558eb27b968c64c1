// Says from where and how fast the page came.
addEventListener("load", () => {
  const [page] = performance.getEntriesByType("navigation");
  const line = document.createElement("p");
  line.id = "greeting";
  line.textContent = `Served by ${location.host} in ${Math.max(1, Math.round(page.responseEnd - page.startTime))} ms.`;
  document.querySelector("main").append(line);
});
