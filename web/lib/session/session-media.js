// Which transport a session's media has, with what it needs of the session.

import { systemClock } from '../clock.js';
import { OTEvent } from '../events.js';
import { iceConfiguration } from '../media/ice.js';
import { createTransport } from '../media/transport.js';

/**
 * @param {import('./session.js').Session} session
 * @param {import('../line/client.js').Client} client
 * @param {import('./session.js').SessionOptions} options
 * @param {'relayed' | 'routed'} mediaMode
 */
export function transportFor(session, client, { iceConfig, clock, rtc }, mediaMode) {
  return createTransport(mediaMode, {
    // Not yet known where the transport is made before we are let in.
    get connectionId() { return session.connection?.connectionId ?? ''; },
    request: (type, members) => session._request(type, members),
    configuration: async () => iceConfiguration(await client.ice.current(), iceConfig),
    clock: clock ?? systemClock,
    rtc: rtc ?? globalThis,
    failed: (error) => session.dispatch(new OTEvent('mediaFault', { error })),
    link: () => client.media,
    publishAgain: (streamId) => session._publications.tellAgain(streamId),
    subscribeAgain: (streamId) => session._subscriptions.tellAgain(streamId),
  });
}
