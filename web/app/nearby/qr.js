// A link as a picture that a phone reads. The server draws it.

/**
 * What each place is to show.
 * @type {WeakMap<HTMLElement, string>}
 */
const wanted = new WeakMap();

/**
 * @param {HTMLElement} place empty until the picture is there, and where there is none
 * @param {string} text none takes the picture away
 * @param {string} label
 */
export async function showQr(place, text, label) {
  wanted.set(place, text);
  place.replaceChildren();
  const svg = text ? await drawn(text) : null;
  // Another may be wanted by now.
  if (svg === null || wanted.get(place) !== text) return;
  const image = document.createElement('img');
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  image.alt = label;
  place.replaceChildren(image);
}

/** @param {string} text @returns {Promise<string | null>} an SVG image; without one there is still the link to read */
async function drawn(text) {
  try {
    // In the body: proxies log addresses, and the link may hold a code.
    const response = await fetch('/v1/qr', { method: 'POST', body: text });
    return response.ok ? await response.text() : null;
  } catch {
    return null;
  }
}
