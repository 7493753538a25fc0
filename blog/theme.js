// Before anything is painted: the colours that the reader chose on an earlier page.
try {
  const chosen = localStorage.getItem("reading-in-order:theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is forbidden: the colours are the system's.
}
