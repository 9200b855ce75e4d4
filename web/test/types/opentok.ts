// Application code in TypeScript, as OpenTok's documentation writes it. It is only compiled, never run.

import '../../v2/js/opentok.min.js';
import OTModule, { initSession, type Publisher, type Stream, type Subscriber } from '../../v2/js/opentok.esm.js';

const streams = new Map<string, Stream>();
const session = OT.initSession('key', 'session', { connectionEventsSuppressed: true });
session
  .on('streamCreated', ({ stream, target }) => {
    const subscriber: Subscriber = target.subscribe(stream, 'subscriber', { insertMode: 'append', audioVolume: 50 }, (error) => {
      if (error) console.error(error.name, error.code);
    });
    streams.set(stream.streamId, stream);
    console.log(stream.initials.length, stream.frameRate ?? 30);
    subscriber.on('captionReceived', ({ caption, isFinal }) => console.log(caption.length, isFinal));
    subscriber.on('videoDisabled', ({ reason }) => console.log(reason.length)).setStyle('nameDisplayMode', 'off');
  })
  .on({ sessionReconnecting: () => {}, sessionReconnected: () => {} })
  .on('signal:chat', ({ data, from }) => console.log(data, from?.connectionId))
  .on('archiveStarted', ({ id, name }) => console.log(id.length, name.length))
  .once('sessionDisconnected', (event) => event.preventDefault())
  .connect('token', (error) => {
    if (!error) session.signal({ type: 'chat', data: 'hello', retryAfterReconnect: false });
  });

const publisher: Publisher = OTModule.initPublisher('publisher', {
  resolution: '1280x720', frameRate: 15, audioFallback: { publisher: true }, videoFilter: { type: 'backgroundBlur', blurStrength: 'high' },
  initials: 'AL', publishCaptions: true, style: { backgroundImageURI: 'https://example.org/a.png' },
});
publisher.on('streamDestroyed', (event) => event.preventDefault());
publisher.getStats((_error, stats) => console.log(stats?.[0].stats.video.bytesSent));
export const moderated = session.forceMuteAll([...streams.values()]).then(() => publisher.cycleVideo()).then(({ deviceId }) => deviceId);

// @ts-expect-error a misspelled option
OT.initPublisher('publisher', { insertMode: 'inside' });
// @ts-expect-error a token is missing
initSession('key', 'session').connect();
