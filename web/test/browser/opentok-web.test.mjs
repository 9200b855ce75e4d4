// OpenTok's SDK for browsers, `/v2/js/opentok.min.js`, in pages of an application that were written against OpenTok's documentation.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import test, { before } from 'node:test';
import { promisify } from 'node:util';
import { sharedBrowsers } from './browsers.mjs';
import { framesRise, seesColor, soundArrives } from './media.mjs';
import { opentokSite, projectOf } from './opentok-site.mjs';
import { removeFolder, temporaryFolder } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { NotYet } from './wait.mjs';

const { chromium, firefox } = sharedBrowsers();
const run = promisify(execFile);

/** One server for all tests of this file. Each test has its own session. */
let setUp;
before(async (t) => {
  const folder = await temporaryFolder('clip');
  t.after(() => removeFolder(folder));
  const clip = path.join(folder, 'clip.webm');
  const server = await serve(t);
  const [site, project] = await Promise.all([
    opentokSite(t, { '/clip.webm': clip }), projectOf(server),
    run('ffmpeg', [
      '-v', 'error', '-f', 'lavfi', '-i', 'color=yellow:s=320x240:r=15', '-f', 'lavfi', '-i', 'sine=frequency=440', '-t', '2',
      '-c:v', 'libvpx', '-c:a', 'libopus', clip,
    ]),
  ]);
  setUp = { server, site, project };
});

/** A new session, and a function that opens pages in it. */
async function room(t, media = 'relayed', engine = chromium) {
  const { server, site, project } = setUp;
  const session = await server.command('session', 'create', '--media', media);
  return async (name, { browser = engine, as = '', role, url = server.url, ...options } = {}) => {
    const page = await (await browser()).newPage({ label: as, ...options });
    t.after(() => page.close());
    const token = project.token(session, { role, data: `name=${as}` });
    await page.goto(site(name, { server: url, session, key: project.key, token, as }));
    return page;
  };
}

/** Waits until the page has logged this line, `times` times. */
function logs(page, line, times = 1) {
  return page.until(`the page logs "${line}"`, async () => {
    const lines = (await page.evaluate('document.getElementById("log").textContent')).split('\n');
    const count = lines.filter((one) => one === line).length;
    if (count < times) throw new NotYet(`it has logged ${JSON.stringify(lines)}`);
    return true;
  });
}

/** Defines a test in Chromium for every run, and in Firefox for the second tier. */
function inBoth(title, body) {
  test(title, (t) => body(t, chromium));
  testInFull(`${title}: Firefox`, 'the same in Chromium', (t) => body(t, firefox));
}

/** Returns the lines that the page has logged. */
const logOf = async (page) => (await page.evaluate('document.getElementById("log").textContent')).trim().split('\n');

const shown = (page, selector) => page.waitFor(`${selector} is in the page`, (one) => document.querySelectorAll(one).length === 1, { args: [selector] });

for (const [engine, browser, media] of [['Chromium', chromium, 'routed'], ['Firefox', firefox, 'relayed']]) {
  test(`two people see and hear each other in ${engine}, in a ${media} session`, async (t) => {
    const open = await room(t, media);
    const hostile = '<img src=x onerror="document.title=\'hacked\'">';
    const ann = await open('basic', { browser, as: hostile, color: 'red' });
    const ben = await open('basic', { browser, as: 'Ben', color: 'blue' });
    await Promise.all([seesColor(ann, 'blue'), seesColor(ben, 'red')]);
    await Promise.all([framesRise(ann), framesRise(ben), logs(ben, 'connected'), logs(ann, `connection: name=Ben`)]);
    await Promise.all([shown(ben, '#subscriber .OT_subscriber:not(.OT_loading) .OT_widget-container > .OT_video-element'),
      shown(ben, '#publisher .OT_publisher:not(.OT_loading).OT_mirrored .OT_video-element')]);
    assert.equal(await ben.evaluate('document.querySelector("#subscriber .OT_name").textContent'), hostile);
    assert.equal(await ben.evaluate('document.querySelectorAll("#subscriber img").length'), 0);

    // The buttons of the default interface.
    await ann.click('button', 'Mute microphone');
    assert.ok(await ann.find('button', 'Unmute microphone'));
    await ben.waitFor('the stream is muted', 'OT.subscribers.find().stream.hasAudio === false');
    const stats = await ben.evaluate('new Promise((resolve) => OT.subscribers.find().getStats((error, all) => resolve(all)))');
    assert.ok(stats.video.packetsReceived > 0 && stats.video.frameRate >= 0 && stats.timestamp > 0);
    assert.match(await ben.evaluate('OT.subscribers.find().getImgData()'), /^iVBOR/);

    // The default action of the publisher's `streamDestroyed` is prevented, that of the session's is not.
    await ann.evaluate('void (window.keepsPublisher = true, session.unpublish(publisher))');
    await Promise.all([logs(ann, 'publisher streamDestroyed: clientDisconnected'), logs(ben, 'streamDestroyed: clientDisconnected')]);
    await ben.waitFor('the subscriber is removed', 'document.querySelectorAll(".OT_subscriber").length === 0');
    await shown(ann, '#publisher .OT_publisher');
    await ann.evaluate('new Promise((resolve) => session.publish(publisher, resolve)).then(() => null)');
    await seesColor(ben, 'red');
    await ben.evaluate('session.disconnect().then(() => null)');
    await logs(ben, 'sessionDisconnected: clientDisconnected');
    assert.equal(await ben.evaluate('document.querySelectorAll(".OT_root").length'), 0);
    assert.equal(await ben.evaluate('document.title'), 'basic');
    for (const page of [ann, ben]) assert.deepEqual([page.exceptions, (await logOf(page)).filter((line) => line.startsWith('error'))], [[], []]);
  });
}

inBoth('signals reach everyone, their sender or one person, and fail with OpenTok\'s errors', async (t, engine) => {
  const open = await room(t, 'relayed', engine);
  const [ann, ben] = [await open('signaling'), await open('signaling')];
  await Promise.all([logs(ann, 'ready'), logs(ben, 'ready')]);
  await ann.evaluate('send("hello")');
  await Promise.all([logs(ann, 'mine: signal:msg hello true'), logs(ben, 'theirs: signal:msg hello true'), logs(ben, 'any: signal:msg')]);
  await ben.evaluate('sendToOther("only you")');
  await logs(ann, 'theirs: signal:msg only you true');
  assert.ok(!(await logOf(ben)).some((line) => line.includes('only you')));
  const failures = await ann.evaluate(`Promise.all([
    fail({ type: 'not valid' }), fail({ data: 'x'.repeat(8193) }), fail({ type: 'a', to: nobody }), fail({}),
  ])`);
  assert.deepEqual(failures, [['OT_INVALID_PARAMETER', 400], ['OT_INVALID_PARAMETER', 413], ['OT_NOT_FOUND', 404], null]);
});

test('a shared screen, a canvas and a video file reach another page', async (t) => {
  const open = await room(t);
  const viewer = await open('screen', { as: 'viewer' });
  await logs(viewer, 'ready');
  const sharer = await open('screen', { as: 'sharer', color: 'red', screen: { color: 'cyan', tone: 500 } });
  await logs(sharer, 'ready');
  await sharer.evaluate('void share()');
  await Promise.all([logs(sharer, 'sharing'), logs(viewer, 'type: screen'), seesColor(viewer, 'cyan')]);
  await sharer.evaluate('navigator.mediaDevices.__screen.getVideoTracks()[0].dispatchEvent(new Event("ended"))');
  await Promise.all([logs(sharer, 'mediaStopped'), logs(sharer, 'ended: mediaStopped')]);
  await viewer.waitFor('the screen is removed', 'document.querySelectorAll(".OT_subscriber").length === 0');

  const canvas = await open('canvas');
  await Promise.all([logs(canvas, 'custom: custom'), logs(viewer, 'type: custom'), seesColor(viewer, 'magenta')]);
  await canvas.evaluate('void publisher.destroy()');
  await logs(canvas, 'destroyed');
  await viewer.waitFor('the canvas is removed', 'document.querySelectorAll(".OT_subscriber").length === 0');

  const file = await open('file');
  await logs(file, 'ready');
  await file.click('button', 'Start or stop');
  await Promise.all([logs(file, 'publishing'), seesColor(viewer, 'yellow')]);
});

test('stereo sound is sent with two channels', async (t) => {
  const open = await room(t);
  const listener = await open('audio-only', { as: 'listener', color: 'blue' });
  const player = await open('stereo');
  await logs(player, 'connected: false');
  await player.click('button', 'Start or stop');
  await logs(player, 'publishing');
  await listener.click('button', 'Play sound');
  await logs(listener, 'sound');
  const sdp = await player.evaluate('window.__peers.map(({ remoteDescription }) => remoteDescription?.sdp).join()');
  assert.match(sdp, /stereo=1/);
  await player.click('button', 'Start or stop');
  await logs(player, 'destroyed');
});

test('a voice call has sound, meters and names, and no video', async (t) => {
  const open = await room(t, 'routed');
  const ann = await open('audio-only', { as: 'Ann', color: 'red' });
  const ben = await open('audio-only', { as: 'Ben', color: 'blue' });
  for (const page of [ann, ben]) await logs(page, 'hasVideo: false');
  // Browsers play sound only after a click.
  for (const page of [ann, ben]) await page.click('button', 'Play sound');
  for (const page of [ann, ben]) await Promise.all([logs(page, 'sound'), soundArrives(page)]);
  await shown(ben, '#subscriber .OT_subscriber.OT_audio-only .OT_audio-level-meter.OT_mode-on .OT_audio-level-meter__value');
  await ben.waitFor('the meter moves', '!/\\(0\\)|^$/.test(document.querySelector("#subscriber .OT_audio-level-meter__value").style.transform)');
  assert.deepEqual(await ben.evaluate('[subscriber.getAudioVolume(), subscriber.getStyle("nameDisplayMode"), subscriber.videoWidth() ?? null]'), [40, 'on', null]);
  await ann.evaluate('void publisher.publishAudio(false)');
  await Promise.all([logs(ben, 'hasAudio: false'), logs(ann, 'hasAudio: false')]);
  await ben.evaluate('subscriber.setStyle({ nameDisplayMode: "off", buttonDisplayMode: "on" }) && null');
  await shown(ben, '#subscriber .OT_name.OT_mode-off');
  await ben.click('button', 'Mute sound from Ann');
  assert.ok(await ben.find('button', 'Unmute sound from Ann'));
});

inBoth('a page without a session previews devices and changes them', async (t, engine) => {
  const open = await room(t, 'relayed', engine);
  const page = await open('devices', { color: 'green' });
  await Promise.all(['tracks: audio,video', 'devices: 1 1', 'preview', 'level: number'].map((line) => logs(page, line)));
  // The target itself is the publisher's element.
  await shown(page, '#publisher.OT_publisher .OT_video-element');
  assert.equal(await page.evaluate('document.getElementById("publisher").style.width'), '320px');
  await seesColor(page, 'green', { selector: '.OT_publisher video' });
  await page.evaluate('change()');
  await Promise.all(['camera: picture', 'microphone: audio', 'source: camera'].map((line) => logs(page, line)));
});

inBoth('a session survives an outage, and sends the signals of that time unless they opted out', async (t, engine) => {
  const open = await room(t, 'routed', engine);
  const proxy = await startProxy(setUp.server.frontPort);
  t.after(() => proxy.close());
  const ben = await open('reconnection', { color: 'blue' });
  const ann = await open('reconnection', { color: 'red', url: proxy.url });
  await Promise.all([seesColor(ann, 'blue'), seesColor(ben, 'red')]);
  await proxy.cut();
  await logs(ann, 'reconnecting');
  await ann.evaluate('send("queued")');
  await ann.evaluate('send("dropped", false)');
  await ben.evaluate('send("meanwhile")');
  await logs(ann, 'not sent: OT_NOT_CONNECTED dropped');
  await proxy.heal();
  await Promise.all([logs(ann, 'reconnected'), logs(ann, 'signal: meanwhile'), logs(ben, 'signal: queued')]);
  assert.equal(await ann.evaluate('session.isConnected()'), true);
  for (const page of [ann, ben]) assert.ok(!(await logOf(page)).some((line) => /dropped$|streamDestroyed/.test(line) && !line.startsWith('not sent')));
});

inBoth('a moderator mutes, unpublishes and disconnects others, and nobody else may', async (t, engine) => {
  const open = await room(t, 'relayed', engine);
  const ann = await open('moderation', { as: 'Ann', role: 'moderator', color: 'red' });
  const ben = await open('moderation', { as: 'Ben', color: 'blue' });
  await Promise.all([logs(ann, 'may moderate: 1'), logs(ben, 'may moderate: 0'), logs(ann, 'stream: Ben'), logs(ben, 'stream: Ann')]);
  const act = (page, method) => page.evaluate((name) => window.do(name), method);
  for (const [method, code] of [['forceMuteAll', 1540], ['forceUnpublish', 1530], ['forceDisconnect', 1520]]) {
    await act(ben, method);
    await logs(ben, `${method}: OT_PERMISSION_DENIED ${code}`);
  }
  await act(ann, 'forceMuteStream');
  await Promise.all([logs(ben, 'muted'), logs(ann, 'Ben hasAudio: false')]);
  await act(ann, 'forceMuteAll');
  await Promise.all([logs(ann, 'muteForced: true'), logs(ben, 'muted', 2)]);
  await act(ann, 'disableForceMute');
  await logs(ben, 'muteForced: false');
  assert.ok(!(await logOf(ann)).includes('muted'));
  await act(ann, 'forceUnpublish');
  await Promise.all([logs(ben, 'unpublished: forceUnpublished'), logs(ann, 'gone: Ben forceUnpublished')]);
  await ben.evaluate('void publish()');
  await logs(ann, 'stream: Ben', 2);
  await act(ann, 'forceDisconnect');
  await Promise.all([logs(ben, 'disconnected: forceDisconnected'), logs(ann, 'left: forceDisconnected')]);
});

test('what does not exist yet fails with OpenTok\'s errors, and the module has the same members', async (t) => {
  const open = await room(t);
  const page = await open('support', { color: 'red' });
  await logs(page, 'done');
  assert.deepEqual(await logOf(page), [
    'requirements: 1', 'encryption: false', 'encrypted: OT_NOT_SUPPORTED 1013', 'secret: OT_NOT_SUPPORTED 1013',
    'report: OT_REPORT_ISSUE_FAILED 2010', 'replacement: true OT_NOT_SUPPORTED 1013', 'connector: fulfilled camera', 'connector destroyed',
    'none: fulfilled', 'invalid: OT_INVALID_SESSION_ID', 'token: OT_AUTHENTICATION_ERROR', 'done',
  ]);
  const module = await open('module');
  await logs(module, 'module: true function true');
});
