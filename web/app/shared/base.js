// The path of the server: empty if it is at the root of its origin, or the path below which a proxy serves it beside
// other pages. It is taken from the address of this module. So pages need no setting, and work behind a proxy that
// removes the path as well as behind one that keeps it.

const own = '/app/shared/base.js';

/**
 * Returns the path below which a server is, without a slash at its end. Empty for the root, and if the module has an
 * unexpected URL.
 * @param {string} module the URL of this module
 */
export function basePathIn(module) {
  const { protocol, pathname } = new URL(module);
  return protocol.startsWith('http') && pathname.endsWith(own) ? pathname.slice(0, -own.length) : '';
}

export const basePath = basePathIn(import.meta.url);

/**
 * Returns the address of a page or a resource on this server, for links and requests. Module imports and style sheets
 * do not need it, because their addresses are relative.
 * @param {string} path from the server's URL, such as `/rooms?guest=1`
 */
export const at = (path) => basePath + path;
