// A page in Chromium that takes part in a session through the browser SDK: it publishes a camera, or it watches everyone and
// prints each second what it sees and hears. `Benchmarks/networks` runs it in network namespaces.
//
//   node page.mjs publish SERVER SESSION TOKEN SOUND
//   node page.mjs watch SERVER SESSION TOKEN FOCUS COUNT SECONDS
//
// `publish` sends Chromium's test picture in 640 × 480, and SOUND (.wav) from the microphone, until it is stopped.
//
// `watch` shows the stream that is called FOCUS in 640 × 360 pixels, and the others in 320 × 180. When COUNT streams play, it
// prints a line of JSON each second. The members are described at `difference`.
import { setTimeout as pause } from 'node:timers/promises';
import { launchChromium } from '../../web/test/browser/chromium.mjs';
import { NotYet } from '../../web/test/browser/wait.mjs';

/** Browsers give a camera to every page under `localhost`, and not to an address. */
const trusted = 'confab.localhost';
const joining = 60_000;
/** How long a page looks for a network, and how many browsers are started until one finds it. */
const [networkMs, maxStarts] = [2000, 5];

const [task, server, ...rest] = process.argv.slice(2);
const tasks = { publish: showCamera, watch: printSeconds };
if (!tasks[task]) {
  console.error('usage: node page.mjs publish SERVER SESSION TOKEN SOUND | watch SERVER SESSION TOKEN FOCUS COUNT SECONDS');
  process.exit(2);
}
await tasks[task](...rest);

/**
 * Opens a page of the server, to be filled by the functions below. Sometimes Chromium finds no network for WebRTC in a namespace
 * that was made just before it started, and then never does, not even for a new connection. So this starts another one.
 */
async function open(label, sound) {
  const url = new URL(server);
  const flags = [`--host-resolver-rules=MAP ${trusted} ${url.hostname}`, '--autoplay-policy=no-user-gesture-required'];
  url.hostname = trusted;
  for (let attempt = 1; attempt <= maxStarts; attempt += 1) {
    const browser = await launchChromium({ sound, flags });
    const page = await browser.newPage({ label });
    await page.goto(new URL('/try', url).href);
    if (await page.evaluate(findsNetwork, networkMs)) return { browser, page };
    console.error(`Chromium found no network (attempt ${attempt} of ${maxStarts}).`);
    await browser.close();
  }
  throw new Error('Chromium found no network for WebRTC.');
}

/** Runs in the page: whether a connection finds an address of this computer within so many milliseconds. */
function findsNetwork(limit) {
  const connection = new RTCPeerConnection();
  connection.createDataChannel('');
  return new Promise((resolve) => {
    connection.onicecandidate = ({ candidate }) => { if (candidate?.candidate) resolve(true); };
    connection.setLocalDescription();
    setTimeout(resolve, limit, false);
  }).finally(() => connection.close());
}

async function showCamera(session, token, sound) {
  const { page } = await open('publishing', sound);
  await page.evaluate(publish, session, token);
  console.log('The camera is published.');
}

/** Runs in the page. */
async function publish(sessionId, token) {
  const { OT } = await import('/lib/index.js');
  document.body.replaceChildren();
  const session = OT.initSession('1', sessionId);
  await new Promise((resolve, reject) => { session.connect(token, (error) => (error ? reject(error) : resolve())); });
  const place = document.body.appendChild(document.createElement('div'));
  const publisher = OT.initPublisher(place, { name: 'Camera', insertMode: 'append', width: '160px', height: '120px' });
  await new Promise((resolve, reject) => { session.publish(publisher, (error) => (error ? reject(error) : resolve())); });
}

async function printSeconds(session, token, focus, count, seconds) {
  const { browser, page } = await open('watching');
  await page.evaluate(watch, session, token, focus);
  await page.until('all streams play', async () => {
    const streams = await page.evaluate(measure);
    const playing = streams.filter(({ audio, video }) => audio.totalSamplesReceived && video.framesDecoded).length;
    if (playing < Number(count)) throw new NotYet(`${playing} of ${count} do; there are ${streams.length}`);
    if (!streams.some(({ isFocus }) => isFocus)) throw new NotYet(`none of them is called ${focus}`);
    return true;
  }, { timeout: joining });
  const started = performance.now();
  let before = await page.evaluate(measure);
  for (let second = 1; second <= Number(seconds); second += 1) {
    await pause(Math.max(0, started + second * 1000 - performance.now()));
    const now = await page.evaluate(measure);
    console.log(JSON.stringify({ second, ...difference(now, before) }));
    before = now;
  }
  await browser.close();
  process.exit();
}

/**
 * Runs in the page: joins the session and shows every stream in a tile of its own. `window.tiles` are the tiles, and
 * `window.still` says how long the picture in focus stood still.
 */
async function watch(sessionId, token, focus) {
  // The tests' pages have half a device pixel per CSS pixel, which is cheaper to paint.
  Object.defineProperty(window, 'devicePixelRatio', { value: 1 });
  const { OT } = await import('/lib/index.js');
  document.body.replaceChildren();
  Object.assign(document.body.style, { display: 'block', height: 'auto' });
  window.tiles = [];
  window.still = { since: performance.now(), longest: 0 };
  const note = (video) => {
    video.requestVideoFrameCallback((now) => {
      const { since, longest } = window.still;
      window.still = { since: now, longest: Math.max(longest, now - since) };
      note(video);
    });
  };
  const session = OT.initSession('1', sessionId);
  session.on('streamCreated', ({ stream }) => {
    const isFocus = stream.name === focus && !window.tiles.some((tile) => tile.isFocus);
    const [width, height] = isFocus ? ['640px', '360px'] : ['320px', '180px'];
    const place = document.createElement('div');
    Object.assign(place.style, { position: 'relative', float: 'left', width, height });
    if (isFocus) document.body.prepend(place); else document.body.append(place);
    const subscriber = session.subscribe(stream, place, { insertMode: 'append', width: '100%', height: '100%' });
    if (isFocus) note(place.querySelector('video'));
    window.tiles[isFocus ? 'unshift' : 'push']({ isFocus, subscriber });
  });
  await new Promise((resolve, reject) => { session.connect(token, (error) => (error ? reject(error) : resolve())); });
}

/** Runs in the page: the statistics of every stream, the one in focus first. */
async function measure() {
  const { since, longest } = window.still;
  window.still.longest = 0;
  const still = Math.round(Math.max(longest, performance.now() - since));
  return Promise.all(window.tiles.map(async ({ isFocus, subscriber }) => {
    const report = await subscriber.getRtcStatsReport();
    const entries = [...report.values()].filter(({ type }) => type === 'inbound-rtp');
    const [audio, video] = ['audio', 'video'].map((wanted) => entries.find(({ kind }) => kind === wanted) ?? {});
    const pair = report.get(report.get(audio.transportId)?.selectedCandidatePairId);
    const path = { protocol: report.get(pair?.localCandidateId)?.protocol, roundTrip: pair?.currentRoundTripTime };
    return { isFocus, still, audio, video, path };
  }));
}

/** Returns what happened between two measurements. In lists, the stream in focus comes first. */
function difference(now, before) {
  const risen = (kind, name) => now.map((stream, index) => (stream[kind][name] ?? 0) - (before[index]?.[kind][name] ?? 0));
  const sum = (kind, name) => risen(kind, name).reduce((total, value) => total + value, 0);
  const bytes = ['audio', 'video'].flatMap((kind) => [sum(kind, 'bytesReceived'), sum(kind, 'headerBytesReceived')]);
  const frames = risen('video', 'framesDecoded');
  const silent = risen('audio', 'silentConcealedSamples');
  return {
    /** With RTP headers. */
    kilobits: Math.round(bytes.reduce((total, value) => total + value, 0) * 8 / 1000),
    /** Of each video; null if no frame was decoded. */
    widths: now.map(({ video }, index) => (frames[index] > 0 ? video.frameWidth : null)),
    /** Samples of each stream's audio that the jitter buffer made up, without those that are silent. */
    concealed: risen('audio', 'concealedSamples').map((samples, index) => samples - silent[index]),
    /** Those that are silent: here the rest of a long gap, because the published audio has no pauses. */
    silent,
    /** Samples of each stream's audio, with all that were made up. */
    played: risen('audio', 'totalSamplesReceived'),
    /** Packets of all audio: lost, discarded as late or redundant, and received for error correction. */
    lost: sum('audio', 'packetsLost'),
    discarded: sum('audio', 'packetsDiscarded'),
    corrections: sum('audio', 'fecPacketsReceived'),
    /** Mean time that audio spent in jitter buffers, in milliseconds. */
    buffered: Math.round(1000 * sum('audio', 'jitterBufferDelay') / Math.max(1, sum('audio', 'jitterBufferEmittedCount'))),
    /** Of the video in focus: decoded frames, and freezes as the browser counts them. */
    frames: frames[0],
    freezes: risen('video', 'freezeCount')[0],
    /** The longest time for which it stood still, in milliseconds, with the part in earlier seconds. */
    still: now[0].still,
    /** Of the connection: its protocol, and the round trip of its latest check in seconds. */
    path: now[0].path,
  };
}
