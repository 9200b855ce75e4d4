// Rejects requests before they are sent: those that the server would reject, those that exceed the limits of this
// client, and all requests before connecting.

import { bytesOf } from './link.js';

/** Bytes to reserve for the numbering that is added on sending. */
const numberingBytes = 64;

/**
 * @param {{type: string, description?: unknown, sdp?: unknown}} body
 * @param {{state: import('./client.js').ClientState, limits?: {message: number, description: number}, link: import('./link.js').Link, isFull: boolean}} client
 * @returns {import('../errors.js').ErrorMembers | null} the error with which to reject the request; null to send it
 */
export function refusalOf(body, { state, limits, link, isFull }) {
  if (state === 'idle' || state === 'closed') return { code: 'not_connected', message: 'Call connect() first.' };
  if (isFull) {
    return {
      code: 'too_many_requests', retryable: true,
      message: 'Too many requests are waiting for a response. Wait for some of them, then try again.',
    };
  }
  const { message: most, description: maxWithDescription } = limits ?? { message: 65536, description: 262144 };
  if (bytesOf(body) + numberingBytes > (body.description || body.sdp ? maxWithDescription : most)) {
    return { code: 'message_too_large', message: 'This message is too long. Shorten it.' };
  }
  if (state !== 'connected' && !link.hasRoom(body)) {
    return {
      code: 'offline_queue_full', retryable: true,
      message: 'Too many messages are waiting for the connection. Try again after it is restored.',
    };
  }
  return null;
}
