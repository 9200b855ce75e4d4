// Where a publisher or subscriber is inserted.

/** @typedef {import('../lib/media/widget.js').Target} Target */

/**
 * Returns the target for the SDK. If no element has the given id, adds one to the end of the page, as OpenTok does.
 * @param {Target} target
 * @returns {Target}
 */
export function targetOf(target) {
  if (typeof target !== 'string' || document.getElementById(target)) return target;
  const made = document.createElement('div');
  made.id = target;
  document.body.append(made);
  return made;
}
