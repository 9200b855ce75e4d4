// Parses the page's address: the room, and how the user arrives. Pure.

/**
 * @param {{pathname: string, search: string, hash: string}} location
 * @param {any} [kept] the state of the history entry, which survives a reload
 * @returns {{name: string, guest: boolean, mesh: boolean, token: string | null}} name: empty if the address is invalid. token:
 *   issued by an application, and read from the fragment, which browsers do not send to servers
 */
export function arrivalIn({ pathname, search, hash }, kept) {
  const query = new URLSearchParams(search);
  const encoded = pathname.startsWith('/room/') ? pathname.slice('/room/'.length).replace(/\/$/, '') : '';
  return {
    name: (decoded(encoded) || query.get('room') || '').normalize('NFC'),
    guest: query.has('guest'),
    mesh: query.get('media') === 'mesh',
    token: new URLSearchParams(hash.slice(1)).get('token')?.trim() || (typeof kept?.token === 'string' ? kept.token : null),
  };
}

/**
 * Returns whether a token sets its holder's name. Decides only whether the page asks for a name: the server verifies the token.
 * @param {string | null} token
 */
export function namesItsHolder(token) {
  try {
    const claims = (token ?? '').split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    return Boolean(JSON.parse(atob(claims)).name);
  } catch {
    return false; // The server reports what is wrong with it.
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
