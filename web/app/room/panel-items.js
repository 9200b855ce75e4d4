// The actions that the user may take on a person in the People panel. The function is pure.

/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./types.js').Role} Role */
/**
 * A person, with everything that the person's row and its menu depend on.
 * @typedef {import('./types.js').Person & {isMe: boolean, myRole: Role, isMuted: boolean, shares: boolean}} Row
 */

/**
 * Returns the items of a person's menu. Hosts may do everything; cohosts may do everything except change roles and
 * remove hosts or other cohosts. The menu is empty if the user is a guest, and in the user's own row.
 * @param {Row} row
 * @returns {['muteOther' | 'stopShare' | 'makeHost' | 'makeCohost' | 'makeGuest' | 'remove', Event][]}
 */
export function itemsFor({ connectionId, displayName: name, role, isMe, myRole, isMuted, shares }) {
  if (isMe || myRole === 'guest') return [];
  const isMyHost = myRole === 'host';
  const roles = /** @type {const} */ ([['host', 'makeHost'], ['cohost', 'makeCohost'], ['guest', 'makeGuest']]);
  /** @type {ReturnType<typeof itemsFor>} */
  const items = [];
  if (!isMuted) items.push(['muteOther', { type: 'muteOther', connectionId }]);
  if (shares) items.push(['stopShare', { type: 'stopShareOf', connectionId }]);
  for (const [other, text] of isMyHost ? roles.filter(([is]) => is !== role) : []) {
    const isHandingOver = other === 'host';
    items.push([text, isHandingOver ? { type: 'ask', question: { is: 'host', connectionId, name } } : { type: 'setRole', connectionId, role: other }]);
  }
  if (isMyHost || role === 'guest') items.push(['remove', { type: 'ask', question: { is: 'remove', connectionId, name } }]);
  return items;
}
