// Where the server is.

import { ConfabError } from './errors.js';

/** @returns {string} the socket of the server this module came from */
export function defaultURL() {
  const url = new URL('/v1/socket', import.meta.url);
  if (!url.protocol.startsWith('http')) {
    throw new ConfabError({ code: 'no_url', message: 'Give the Client a `url`: this module was not loaded from a server.' });
  }
  url.protocol = url.protocol.replace('http', 'ws');
  return url.href;
}

/** @param {string} socket a server's socket @param {string} path @returns {string} that path on the same server */
export function httpURL(socket, path) {
  const url = new URL(path, socket);
  url.protocol = url.protocol.replace('ws', 'http');
  return url.href;
}
