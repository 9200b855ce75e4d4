// Parses the page's address: the room's name, and the options in the query and the fragment. All functions are pure.

import { basePath } from '../shared/base.js';

/**
 * Parses a room's address.
 * @param {{pathname: string, search: string, hash: string}} location
 * @param {any} [kept] `history.state`, which survives a reload; it may contain the token
 * @param {string} [base] the path under which the server is deployed
 * @returns {{name: string, guest: boolean, mesh: boolean, token: string | null}} name: the room's, or empty if the
 *   address cannot be read. token: an application's token, from the fragment (which browsers do not send to servers)
 *   or from `kept`; null if there is none
 */
export function arrivalIn({ pathname, search, hash }, kept, base = basePath) {
  const query = new URLSearchParams(search);
  const start = `${base}/room/`;
  const encoded = pathname.startsWith(start) ? pathname.slice(start.length).replace(/\/$/, '') : '';
  return {
    name: (decoded(encoded) || query.get('room') || '').normalize('NFC'),
    guest: query.has('guest'),
    mesh: query.get('media') === 'mesh',
    token: new URLSearchParams(hash.slice(1)).get('token')?.trim() || (typeof kept?.token === 'string' ? kept.token : null),
  };
}

/**
 * Returns whether a token contains a name for its holder. Decides only whether the page asks for a name: the server
 * verifies the token.
 * @param {string | null} token
 */
export function namesItsHolder(token) {
  try {
    const claims = (token ?? '').split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    return Boolean(JSON.parse(atob(claims)).name);
  } catch {
    return false; // The server reports what is wrong with the token.
  }
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
