// Shows a link as a QR code, which the server draws.

import { at } from './base.js';

/**
 * Maps an element to the text whose QR code it should show.
 * @type {WeakMap<HTMLElement, string>}
 */
const wanted = new WeakMap();

/** Maximum pause before another attempt, in milliseconds. The server normally requests less than a minute. */
const longestPause = 600_000;

/**
 * Shows the QR code of a text in an element. If the server is too busy, shows a note and tries again later.
 * @param {HTMLElement} place the element; it stays empty until the server responds, and if it returns no image
 * @param {string} text an empty text removes the image
 * @param {string} label
 * @param {string} [later] a sentence to show while the server is too busy to draw the code, until the request is
 * repeated
 */
export async function showQr(place, text, label, later = '') {
  wanted.set(place, text);
  place.replaceChildren();
  const { svg, retryMs } = text ? await drawn(text) : none;
  // By now, the element may have to show the code of another text.
  if (wanted.get(place) !== text) return;
  if (svg !== null) {
    const image = document.createElement('img');
    image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
    image.alt = label;
    place.replaceChildren(image);
  } else if (retryMs !== null) {
    const note = document.createElement('p');
    note.textContent = later;
    place.replaceChildren(note);
    setTimeout(() => { if (wanted.get(place) === text) showQr(place, text, label, later); }, retryMs);
  }
}

/** @type {{ svg: string | null, retryMs: number | null }} */
const none = { svg: null, retryMs: null };

/**
 * Returns an SVG image, or how long to wait before asking for it again. After any other failure, returns neither: the
 * page still shows the link as text.
 * @param {string} text
 * @returns {Promise<typeof none>}
 */
async function drawn(text) {
  try {
    // Send the link in the body, because proxies log URLs and the link may contain a code.
    const response = await fetch(at('/v1/qr'), { method: 'POST', body: text });
    if (response.ok) return { svg: await response.text(), retryMs: null };
    const seconds = Number(response.headers.get('Retry-After'));
    return seconds > 0 ? { svg: null, retryMs: Math.min(seconds * 1000, longestPause) } : none;
  } catch {
    return none;
  }
}
