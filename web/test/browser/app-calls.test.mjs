// The iOS app and a page call each other: the app's model with a simulated device and system call screen, the Linux engine in
// place of WebRTC, and a real browser on the other side.
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { remoteColor, soundArrives, soundStops } from './media.mjs';
import { ann, bob, call, cat, come, isFree, lists, places, rings, says, see, serveNearby } from './neighbor.mjs';
import { startPhone } from './phone.mjs';
import { assertNothingThrown, keepReceiving } from './stranger.mjs';

const { chromium } = sharedBrowsers();

test('the app answers, mutes and holds a page\'s call on the system\'s screen, changes to a second call, and ends it', async (t) => {
  const server = await serveNearby(t);
  const browser = await chromium();
  const [phone, b, c] = await Promise.all([
    startPhone(t, server, ann), come(t, browser, server.url, { ...bob, at: places.nextDoor }), come(t, browser, server.url, cat),
  ]);
  await Promise.all([lists(b, 'Ann'), lists(c, 'Ann')]);

  await call(b, 'Ann');
  await phone.systemShows({ name: 'Bob', state: 'ringing' });
  await phone.shows(/Bob is calling/);
  await b.waitForStatus(says.ringing);
  phone.do('system answer');
  await Promise.all([see(b, ann), phone.shows(/You are talking with Bob/), phone.framesRise()]);
  await phone.systemShows({ name: 'Bob', state: 'connected' });
  await phone.until('it plays and records', ({ isSounding }) => isSounding);
  await keepReceiving(b);

  phone.do('system mute');
  await phone.shows(/\[x\] Mute/);
  await soundStops(b);
  phone.do('system unmute');
  await soundArrives(b);

  phone.do('system hold');
  await phone.shows(/^On hold/);
  await phone.until('it is silent', ({ isSounding }) => !isSounding);
  await b.until('the red video is gone', async () => await remoteColor(b) !== 'red' || !await b.has('video', 'Ann'));
  phone.do('system resume');
  await Promise.all([see(b, ann), phone.until('it plays and records', ({ isSounding }) => isSounding)]);

  await call(c, 'Ann');
  await phone.systemShows({ name: 'Bob', state: 'connected' }, { name: 'Cat', state: 'ringing' });
  phone.do('system answer');
  await Promise.all([b.waitForStatus(says.hungUp), see(c, ann), phone.shows(/You are talking with Cat/), phone.framesRise()]);
  await phone.systemShows({ name: 'Cat', state: 'connected' });
  await isFree(b);

  phone.do('press end');
  await c.waitForStatus(says.hungUp);
  await phone.systemShows();
  await phone.shows(/The call ended/);
  await phone.until('it is silent', ({ isSounding }) => !isSounding);
  await isFree(c);
  phone.assertNoFaults();
  assertNothingThrown(b, c);
});

test('the app calls a page, which answers and ends the call', async (t) => {
  const server = await serveNearby(t);
  const [phone, b] = await Promise.all([
    startPhone(t, server, ann), chromium().then((browser) => come(t, browser, server.url, { ...bob, at: places.nextDoor })),
  ]);
  await phone.shows(/^- Bob/);
  phone.do('call Bob');
  await rings(b, 'Ann');
  await phone.systemShows({ name: 'Bob', state: 'connecting' });
  await phone.shows(/Ringing…/);
  await b.click('button', 'Accept');
  await Promise.all([see(b, ann), phone.shows(/You are talking with Bob/), phone.framesRise()]);
  await phone.systemShows({ name: 'Bob', state: 'connected' });
  await keepReceiving(b);
  await b.click('button', 'End');
  await phone.shows(/Bob ended the call/);
  await phone.systemShows();
  await isFree(b);
  phone.assertNoFaults();
  assertNothingThrown(b);
});
