// The server's address: that of the folder from which this script was loaded, unless the page sets another one.

import { otFailure } from '../lib/errors.js';

/** The path of the script below the server's address, which may itself have a path. */
const scriptFolder = /\/v2\/js\/[^/]*$/;

/**
 * @param {string | undefined} script the address of the script
 * @returns {string} the address of the server, without a slash at the end; empty if it is unknown
 */
export function serverOf(script) {
  if (!script || !isURL(script)) return '';
  const { protocol, origin, pathname } = new URL(script);
  if (protocol !== 'http:' && protocol !== 'https:') return '';
  return origin + (scriptFolder.test(pathname) ? pathname.replace(scriptFolder, '') : '');
}

/**
 * @param {string} server
 * @returns {string} the address of the server's socket
 */
export function socketOf(server) {
  const isUsable = isURL(server) && /^https?:/.test(server);
  if (!isUsable) {
    throw otFailure('OT_INVALID_PARAMETER', 1011, 'Set OT.properties.apiURL to the address of the server, such as https://chat.example.org.');
  }
  return `${server.replace(/^http/, 'ws').replace(/\/+$/, '')}/v1/socket`;
}

/** @param {string} text */
function isURL(text) {
  try {
    return Boolean(new URL(text));
  } catch {
    return false;
  }
}
