// OpenTok's audio fallback on a network that is too slow for video. Every machine is a network namespace.
import assert from 'node:assert/strict';
import { after, afterEach } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { soundArrives } from './media.mjs';
import { Machine, startNetwork, whyNoNetwork } from './namespace.mjs';
import { projectOf } from './opentok-site.mjs';
import { assertNothingThrown, serve } from './stranger.mjs';
import { isFull, testInFull } from './tier.mjs';
import { NotYet, stopwatch } from './wait.mjs';

const skip = isFull ? await whyNoNetwork() : 'only with --all';
const network = skip ? undefined : await startNetwork(['one', 'other']);
if (network) {
  after(() => network.close());
  afterEach(() => network.clear());
}
const machines = network?.clients ?? [];
const browsers = machines.map((machine) => sharedBrowsers(machine));

/** Enough for the sound of one person, but not for the smallest video, in kbit/s. */
const slow = 70;

/** Runs in a page of the server. Joins a session, and keeps the events of the audio fallback in `window.events`. */
async function join({ key, session, token, publishes }) {
  const { default: OT } = await import(new URL('/v2/js/opentok.esm.js', window.location.href).href);
  document.body.replaceChildren();
  window.events = [];
  const keep = (emitter) => {
    for (const name of ['videoDisableWarning', 'videoDisableWarningLifted', 'videoDisabled', 'videoEnabled']) {
      emitter.on(name, ({ type, reason }) => window.events.push(reason ? `${type} ${reason}` : type));
    }
  };
  const joined = OT.initSession(key, session);
  joined.on('streamCreated', ({ stream }) => {
    keep(joined.subscribe(stream, document.body, { insertMode: 'append', preferredResolution: { width: 640, height: 480 } }));
  });
  const call = (method, ...given) => new Promise((resolve, reject) => {
    joined[method](...given, (error) => (error ? reject(error) : resolve()));
  });
  await call('connect', token);
  if (!publishes) return;
  // A picture of colored squares that all change in every frame, because a plain one needs less than the network has.
  const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 240 });
  const context = canvas.getContext('2d');
  let frame = 0;
  setInterval(() => {
    frame += 1;
    for (let square = 0; square < 1200; square += 1) {
      context.fillStyle = `hsl(${(frame * 97 + square * 61) % 360} 80% ${30 + ((frame + square * 7) % 50)}%)`;
      context.fillRect((square % 40) * 8, Math.floor(square / 40) * 8, 8, 8);
    }
  }, 60);
  const publisher = OT.initPublisher(document.body, {
    insertMode: 'append', audioFallback: { publisher: true }, videoSource: canvas.captureStream(15).getVideoTracks()[0],
  });
  keep(publisher);
  await call('publish', publisher);
}

/** Waits until this event of the audio fallback has happened, and returns all, as a text. */
function happens(page, event) {
  return page.until(`${event} happens`, async () => {
    const events = await page.evaluate('window.events');
    if (!events.includes(event)) throw new NotYet(`the events are ${JSON.stringify(events)}`);
    return events.join(', ');
  }, { timeout: 40_000 });
}

/** Two people, of whom Ann publishes and Ben subscribes, each on a machine of their own. */
async function pair(t) {
  const server = await serve(t, {}, network.options);
  const [project, session] = await Promise.all([projectOf(server), server.command('session', 'create', '--media', 'routed')]);
  const [ann, ben] = await Promise.all(browsers.map(async ({ chromium }, index) => {
    const browser = await chromium();
    const page = await browser.newPage({ color: index === 0 ? 'red' : 'blue' });
    t.after(() => page.close());
    await page.goto(`${Machine.serverURL(browser)}/try`);
    return page;
  }));
  const values = () => ({ key: project.key, session, token: project.token(session) });
  // Browsers play and make sound only after a click or a key.
  await ann.press('a');
  await ann.evaluate(join, { ...values(), publishes: true });
  await ben.evaluate(join, { ...values(), publishes: false });
  await ben.click('button', 'Play sound');
  await ben.waitFor('video arrives', 'document.querySelector(".OT_subscriber video")?.videoWidth > 0');
  return { ann, ben };
}

const proved = 'unit/opentok "shows that the network is too slow for a video"; unit/audio-fallback "stops its video on a network that is too slow"';

testInFull('a subscriber on a slow network keeps the sound, and gets the video again when the network is fast', proved, { skip }, async (t) => {
  const { ann, ben } = await pair(t);
  const time = stopwatch();
  await machines[1].slowDown({ received: slow });
  const until = await happens(ben, 'videoDisabled quality');
  t.diagnostic(`after ${time()}: ${until}`);
  await soundArrives(ben);
  await machines[1].clear();
  const again = stopwatch();
  t.diagnostic(`${await happens(ben, 'videoEnabled quality')}, ${again()} after the network was fast`);
  assert.deepEqual(await ann.evaluate('window.events'), []);
  assertNothingThrown(ann, ben);
});

testInFull('a publisher on a slow network stops its video, and sends it again when the network is fast', proved, { skip }, async (t) => {
  const { ann, ben } = await pair(t);
  const time = stopwatch();
  await machines[0].slowDown({ sent: slow });
  t.diagnostic(`after ${time()}: ${await happens(ann, 'videoDisabled quality')}`);
  await happens(ben, 'videoDisabled publishVideo');
  await soundArrives(ben);
  await machines[0].clear();
  const again = stopwatch();
  t.diagnostic(`${await happens(ann, 'videoEnabled quality')}, ${again()} after the network was fast`);
  await happens(ben, 'videoEnabled publishVideo');
  assertNothingThrown(ann, ben);
});
