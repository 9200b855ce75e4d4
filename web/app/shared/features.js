// The features: pages on which to meet people. The server writes the enabled features into each page, in the order in
// which to show them. `style.css` hides the elements of the disabled ones.

import { at } from './base.js';

/** @typedef {'strangers' | 'nearby' | 'rooms'} Feature */

/** @returns {Feature[]} the enabled features, in the order in which to show them */
export const enabledFeatures = () => /** @type {Feature[]} */ ((document.documentElement.dataset.features ?? '').split(' '));

/** Returns a random room name in the server's format: `abc-defg-hij`. */
export function randomRoomName() {
  const letters = [...crypto.getRandomValues(new Uint32Array(10))].map((value) => String.fromCharCode(97 + value % 26)).join('');
  return `${letters.slice(0, 3)}-${letters.slice(3, 7)}-${letters.slice(7)}`;
}

/**
 * Returns the address of a room. For a guest, the link includes `guest`, so that the room opens for a guest too.
 * @param {string} name
 * @param {boolean} guest
 * @param {boolean} [mesh] whether to create a mesh room if the room does not exist yet
 */
export function roomPath(name, guest, mesh = false) {
  const query = [guest ? 'guest=1' : '', mesh ? 'media=mesh' : ''].filter(Boolean).join('&');
  return at(`/room/${encodeURIComponent(name.normalize('NFC'))}${query && `?${query}`}`);
}

/**
 * Sorts the links to the features' pages in the order of `enabledFeatures`. For a guest, adds `guest` to the links, so
 * that the next page opens for the same guest.
 * @param {boolean} guest
 * @param {string[]} [others] selectors of further links that get `guest`
 */
export function setUpFeatureLinks(guest, others = []) {
  const features = enabledFeatures();
  for (const list of document.querySelectorAll('[data-feature-links]')) {
    const links = [...list.querySelectorAll(':scope > [data-feature]')];
    const rank = (/** @type {Element} */ link) => features.indexOf(/** @type {Feature} */ (link.getAttribute('data-feature'))) >>> 0;
    list.append(...links.sort((one, other) => rank(one) - rank(other)));
  }
  if (!guest) return;
  for (const link of document.querySelectorAll(['[data-feature]', ...others].join(', '))) {
    if (link instanceof HTMLAnchorElement) link.search = '?guest=1';
  }
}
