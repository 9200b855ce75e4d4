// Uploads and downloads the files of a room's chat over HTTP (protocol §15). Each upload has its own secret, which the server issues.

import { ConfabError } from '../errors.js';

/** @typedef {{path: string, key: string, maxSize: number}} FileAccess */
/** @typedef {{fileId: string, path: string, secret: string}} Upload */
/**
 * @typedef {object} Transfer
 * @property {(share: number) => void} [onProgress] called with the share of the file that was sent, from 0 to 1
 * @property {AbortSignal} [signal] cancels the upload
 */

/** Matches a character that the server does not allow in a file name. */
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}/\\:*?"<>|]/gu;
const maxNameBytes = 200;
const encoder = new TextEncoder();

/**
 * Returns a file name that the server accepts: replaces characters that it does not allow, and shortens a long name at
 * the start, because its end contains the file type. Returns `file` if no character is left.
 * @param {string} name
 */
export function safeName(name) {
  let characters = [...name.replace(unsafe, '_').replace(/^[.\s]+|[.\s]+$/gu, '')];
  while (encoder.encode(characters.join('')).length > maxNameBytes) characters = characters.slice(1);
  return characters.join('').replace(/^[.\s]+/u, '') || 'file';
}

export class RoomFiles {
  /** @type {FileAccess | null} where and how to download files; null if files are disabled */
  access = null;

  /**
   * @param {(verb: string, members: Record<string, unknown>) => Promise<any>} request sends a room request
   * @param {() => import('./room.js').RoomHost} host
   */
  constructor(request, host) {
    this.request = request;
    this.host = host;
  }

  /** Maximum size of a file in bytes; 0 if files are disabled. */
  get maxSize() {
    return this.access?.maxSize ?? 0;
  }

  /**
   * Sends a file to everyone in the room. After the upload, it appears as a line of the chat.
   * @param {File} file
   * @param {Transfer} [transfer]
   */
  async send(file, transfer = {}) {
    if (!this.access) throw new ConfabError({ code: 'not_permitted', message: 'This server does not accept files. Send a link instead.' });
    if (file.size === 0) throw new ConfabError({ code: 'file_unreadable', message: 'This file is empty, or it is a folder. Choose another one.' });
    const upload = await this.#announce(file, transfer.signal);
    const { client, options } = this.host();
    await (options.sendFile ?? sendFile)(client.urlOf(upload.path), upload, file, transfer);
  }

  /**
   * Requests permission for an upload. The answer may take a while, because requests wait while the client reconnects.
   * If the user cancels before then, the promise is rejected at once. When the answer arrives, the upload is removed
   * from the server; otherwise it would count as in progress until it expired.
   * @param {File} file
   * @param {AbortSignal} [signal]
   * @returns {Promise<Upload>}
   */
  #announce(file, signal) {
    if (signal?.aborted) return Promise.reject(canceled());
    return new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(canceled()), { once: true });
      this.request('room.file', { name: safeName(file.name), size: file.size }).then((upload) => {
        if (signal?.aborted) this.remove(upload.fileId).catch(() => {}); // If this fails, the server expires the upload a little later.
        else resolve(upload);
      }, reject);
    });
  }

  /** @param {string} fileId @returns {Promise<Blob>} */
  async fetch(fileId) {
    if (!this.access) throw new ConfabError({ code: 'not_found', message: 'This server does not accept files.' });
    return fetchFile(this.host().client.urlOf(`${this.access.path}/${encodeURIComponent(fileId)}`), this.access.key);
  }

  /** @param {string} fileId a file that this person sent; hosts and cohosts may remove any file */
  remove(fileId) {
    return this.request('room.removeFile', { fileId });
  }
}

/** @param {string} url @param {Upload} upload @param {Blob} file @param {Transfer} transfer @returns {Promise<void>} */
export function sendFile(url, { secret }, file, { onProgress, signal }) {
  // Use `XMLHttpRequest`, because `fetch` does not report upload progress.
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('PUT', url);
    request.setRequestHeader('Authorization', `Bearer ${secret}`);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.upload.addEventListener('progress', ({ loaded, total }) => onProgress?.(total ? loaded / total : 0));
    request.addEventListener('load', () => {
      if (request.status < 300) resolve();
      else reject(errorIn(request.responseText) ?? notSent('The server rejected the file. Try again, or send a smaller one.'));
    });
    // Browsers do not distinguish a broken connection from an unreadable file.
    request.addEventListener('error', () => reject(notSent(
      'The file was not sent. Check your network, and make sure that it is a readable file and not a folder. Then send it again.')));
    request.addEventListener('abort', () => reject(canceled()));
    signal?.addEventListener('abort', () => request.abort());
    if (signal?.aborted) reject(canceled());
    else request.send(file);
  });
}

/** @param {string} url @param {string} key @returns {Promise<Blob>} */
export async function fetchFile(url, key) {
  let response;
  try {
    response = await fetch(url, { headers: { Authorization: `Bearer ${key}` }, cache: 'no-store' });
    if (response.ok) return await response.blob();
  } catch {
    throw notFetched('The file could not be downloaded. Check your network, then save it again.');
  }
  throw errorIn(await response.text().catch(() => '')) ?? notFetched('The server did not send the file. Wait a moment, then save it again.');
}

/**
 * Returns the server's error, or null if the body has none, for example because a proxy answered instead of the
 * server.
 * @param {string} body
 */
function errorIn(body) {
  try {
    const error = JSON.parse(body);
    if (typeof error.code === 'string' && typeof error.message === 'string') return ConfabError.fromWire(error);
  } catch {
    // The body is not JSON.
  }
  return null;
}

/** @param {string} message */
const notSent = (message) => new ConfabError({ code: 'upload_failed', message, retryable: true });
/** @param {string} message */
const notFetched = (message) => new ConfabError({ code: 'download_failed', message, retryable: true });
// The code is spelled as on the wire and in the Swift SDK.
const canceled = () => new ConfabError({ code: 'cancelled', message: 'The upload was canceled.' });
