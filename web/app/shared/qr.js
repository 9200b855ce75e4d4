// Shows a link as a QR code, which the server draws.

/**
 * For each element, the text whose QR code it should show.
 * @type {WeakMap<HTMLElement, string>}
 */
const wanted = new WeakMap();

/**
 * @param {HTMLElement} place stays empty until the image is loaded, or if there is none
 * @param {string} text an empty text removes the image
 * @param {string} label
 */
export async function showQr(place, text, label) {
  wanted.set(place, text);
  place.replaceChildren();
  const svg = text ? await drawn(text) : null;
  // By now, the element may have to show the code of another text.
  if (svg === null || wanted.get(place) !== text) return;
  const image = document.createElement('img');
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  image.alt = label;
  place.replaceChildren(image);
}

/** @param {string} text @returns {Promise<string | null>} an SVG image; null on failure; the link is still shown as text */
async function drawn(text) {
  try {
    // Send the link in the body, because proxies log URLs and the link may contain a code.
    const response = await fetch('/v1/qr', { method: 'POST', body: text });
    return response.ok ? await response.text() : null;
  } catch {
    return null;
  }
}
