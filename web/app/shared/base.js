// The path of the server: empty if the server is at the root of its origin, otherwise the path under which a proxy
// serves it beside other pages. The path is taken from the address of this module. So the pages need no setting, and
// work whether or not the proxy removes the path from requests.

const own = '/app/shared/base.js';

/**
 * Returns the path under which the server is deployed, without a slash at its end. Empty for the root, and if the
 * module has an unexpected URL.
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
 * @param {string} path the path on the server, which begins with a slash, such as `/rooms?guest=1`
 */
export const at = (path) => basePath + path;
