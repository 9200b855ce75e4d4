// Cameras in front of the people of the picture, for pages and for guests without a page.
import { source } from '../browser/in-page.mjs';
import { drawing } from './drawing.mjs';

/** @typedef {{width: number, height: number}} Size */

/** Returns the source of a script that gives a page this camera. @param {import('./drawing.mjs').Person} person @param {Size} size */
export function camera(person, size) {
  return `{ ${drawing} ${film} ${source(plugIn, person, size)}; }`;
}

/**
 * Lets a person join a room without a page, which would decode and show the videos of all others.
 *
 * @param {import('../browser/page.mjs').Page} page any page of the server
 * @param {{room: string, name: string, person: import('./drawing.mjs').Person, size: Size}} guest
 */
export function join(page, guest) {
  return page.evaluate(`(() => { ${drawing} ${film} return ${source(enter, guest)}; })()`);
}

/** Runs in a page. Returns the tracks of a camera and a microphone. @returns {MediaStreamTrack[]} */
function film(person, { width, height }) {
  // Few, so that the picture is sharp on a busy machine too.
  const framesPerSecond = 5;
  // Drawn once, and played forward and backward.
  const draw = drawing(person, width, height);
  const frame = (seconds, isBlinking) => {
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    draw(canvas.getContext('2d'), seconds, isBlinking);
    return canvas;
  };
  const frames = Array.from({ length: 10 }, (_, index) => frame(index / framesPerSecond));
  const blink = frame(0, true);
  const screen = Object.assign(document.createElement('canvas'), { width, height });
  const context = screen.getContext('2d');
  let next = 0;
  const show = () => {
    const at = next % (2 * frames.length);
    // Rarely, so that nobody blinks in the picture.
    context.drawImage(next % (4 * frames.length) === 0 ? blink : frames[Math.min(at, 2 * frames.length - 1 - at)], 0, 0);
    next += 1;
  };
  show();
  setInterval(show, 1000 / framesPerSecond);
  const audio = new AudioContext();
  const voice = new OscillatorNode(audio, { frequency: 220 });
  const microphone = new MediaStreamAudioDestinationNode(audio);
  voice.connect(new GainNode(audio, { gain: person.mouth === 'talk' ? 0.3 : 0 })).connect(microphone);
  voice.start();
  return [...microphone.stream.getTracks(), ...screen.captureStream(framesPerSecond).getTracks()];
}

/** Runs in a page, after `film`. */
function plugIn(person, size) {
  const devices = navigator.mediaDevices;
  if (!devices) return; // before the page of the server
  devices.getUserMedia = async (constraints = {}) => new MediaStream(film(person, size).filter(({ kind }) => constraints[kind]));
  devices.enumerateDevices = async () => [
    { kind: 'audioinput', deviceId: 'microphone', groupId: 'film', label: 'Microphone' },
    { kind: 'videoinput', deviceId: 'camera', groupId: 'film', label: 'Camera' },
  ];
}

/** Runs in a page, after `film`. */
async function enter({ room, name, person, size }) {
  const { Client, OT } = await import('/lib/index.js');
  const client = new Client({});
  await client.connect();
  const { sessionId, token } = await client.request('room.join', { name: room, displayName: name });
  const session = OT.initSession('', sessionId, { client });
  await new Promise((resolve, reject) => { session.connect(token, (error) => (error ? reject(error) : resolve())); });
  const [audioSource, videoSource] = film(person, size);
  await new Promise((resolve, reject) => {
    session.publish(document.createElement('div'), { audioSource, videoSource }, (error) => (error ? reject(error) : resolve()));
  });
}
