// What the page's address says: the room, and how the user comes in. Pure.

/**
 * @param {{pathname: string, search: string, hash: string}} location
 * @returns {{name: string, guest: boolean, mesh: boolean, token: string | null}} token: an application's, in the fragment, which
 *   browsers do not send to servers
 */
export function arrivalIn({ pathname, search, hash }) {
  const query = new URLSearchParams(search);
  const encoded = pathname.startsWith('/room/') ? pathname.slice('/room/'.length).replace(/\/$/, '') : '';
  return {
    name: (decoded(encoded) || query.get('room') || '').normalize('NFC').trim(),
    guest: query.has('guest'),
    mesh: query.get('media') === 'mesh',
    token: new URLSearchParams(hash.slice(1)).get('token')?.trim() || null,
  };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
