// Several streams of one page: a camera, a voice with initials, and a voice without a name.
/* global OT, API_KEY, SESSION_ID, TOKEN, NAME, handleError, log */
const session = OT.initSession(API_KEY, SESSION_ID);
const streams = [
  { name: NAME },
  { name: 'Bartholomew Featherstonehaugh of the Northern Archive', initials: 'BF', videoSource: null },
  { videoSource: null },
];
const others = [];
session.on('streamCreated', ({ stream }) => others.push(stream));
/** Whether the stream of this name has sound. */
window.audioOf = (name) => others.find((stream) => stream.name === name)?.hasAudio;
/** Publishes one stream after another, so that everyone sees them in the same order. */
function publish([options, ...later]) {
  if (!options) return log('publishing');
  return session.publish('publisher', { insertMode: 'append', ...options }, (error) => (error ? handleError(error) : publish(later)));
}
session.connect(TOKEN, (error) => (error ? handleError(error) : publish(streams)));
