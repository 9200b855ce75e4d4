// Explains why a session ended, and what to do next.

/**
 * Returns the claims of a token, or an empty object if it is unreadable. Does not verify the token; the server does.
 * @param {string} token
 * @returns {Record<string, unknown>}
 */
export function claimsOf(token) {
  try {
    const claims = JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')));
    return typeof claims === 'object' && claims !== null ? claims : {};
  } catch {
    return {};
  }
}

/**
 * Returns the text that explains the end of a session.
 * @param {{reason: string, error?: {code: string | number, message: string} | null, claims: Record<string, unknown>}} end `error`:
 *   why the server closed the connection; `claims`: the token's claims
 * @param {import('../shared/strings.js').Strings['session']} words
 * @returns {string} empty if the user left
 */
export function endingWords({ reason, error, claims }, words) {
  if (reason === 'clientDisconnected') return '';
  if (reason === 'matchEnded') return words.over;
  // A token with a `match` claim is for a match or call, in which each person has one place: joining from another
  // device takes it over. In other sessions, a moderator disconnected the user.
  if (reason === 'forceDisconnected') return 'match' in claims ? words.tookPlace : words.putOut;
  if (error?.code === 'replaced') return words.replaced;
  return error?.message ?? words.lost;
}
