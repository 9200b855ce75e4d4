// Tests the browser drivers with their own page, because the tests of the real pages rely on them. Needs no Confab server.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { axe } from './axe.mjs';
import { sharedBrowsers } from './browsers.mjs';
import { launchChromium } from './chromium.mjs';
import { audioReceived, framesDecoded, framesRise, remoteColor, seesColor, soundArrives, writePicture, writeTone } from './media.mjs';
import { removeFolder, temporaryFolder } from './process.mjs';
import { inspect, screenshotFolder } from './screenshots.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

const html = `<!doctype html>
<html lang="en">
<title>Drivers</title>
<meta name="viewport" content="width=device-width">
<style>
  :root { color-scheme: light dark; }
  /* axe assumes that a page without a background color is white, even in dark mode */
  body { background: Canvas; color: CanvasText; }
  video { width: 160px; height: 120px; }
  .moving { animation: slide .4s linear; }
  @keyframes slide { from { transform: translateX(300px); } }
</style>
<main>
  <h1>Drivers</h1>
  <p role="status">idle</p>
  <button hidden>Start</button>
  <button aria-hidden="true" tabindex="-1">Start</button>
  <button id="start" class="moving">Start</button>
  <button disabled id="late">Later</button>
  <label>Name <input id="name" value="old"></label>
  <label><input type="checkbox"> I agree</label>
  <div class="OT_publisher"><video id="you" aria-label="You" muted autoplay playsinline></video></div>
  <div class="OT_subscriber"><video id="partner" aria-label="Partner" autoplay playsinline></video></div>
</main>
<script type="module">
  const status = document.querySelector('[role=status]');
  start.onclick = async () => {
    status.textContent = 'starting';
    window.local = await navigator.mediaDevices.getUserMedia({ audio: true, video: true });
    you.srcObject = local;
    status.textContent = 'ready';
  };
  document.querySelector('#name').onkeydown = (event) => {
    if (event.key === 'Enter') status.textContent = 'hello ' + event.target.value;
  };
  function peer() {
    const connection = new RTCPeerConnection();
    window.connection = connection;
    for (const track of local.getTracks()) connection.addTrack(track, local);
    connection.ontrack = ({ streams }) => { partner.srcObject = streams[0]; };
    return connection;
  }
  const gathered = (connection) => new Promise((resolve) => {
    const check = () => connection.iceGatheringState === 'complete' && resolve(connection.localDescription.toJSON());
    connection.addEventListener('icegatheringstatechange', check);
    check();
  });
  window.offer = async () => {
    const connection = peer();
    await connection.setLocalDescription();
    return gathered(connection);
  };
  window.answer = async (offer) => {
    const connection = peer();
    await connection.setRemoteDescription(offer);
    await connection.setLocalDescription();
    return gathered(connection);
  };
  window.accept = (answer) => connection.setRemoteDescription(answer);
</script>`;

let site;
let address;
const { chromium, firefox } = sharedBrowsers();

before(async () => {
  site = http.createServer((request, response) => {
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.end(request.url === '/' ? html : '');
  });
  await new Promise((resolve) => { site.listen(0, '127.0.0.1', resolve); });
  address = `http://127.0.0.1:${site.address().port}/`;
});

after(() => {
  site.closeAllConnections();
  site.close();
});

/** Opens the page, and closes it when the test is over. */
async function open(t, browser, options) {
  const page = await browser.newPage(options);
  t.after(() => page.close());
  await page.goto(address);
  return page;
}

/** Both pages send their camera and microphone, and the test passes the descriptions between them. */
async function call(caller, callee) {
  for (const page of [caller, callee]) {
    await page.click('button', 'Start');
    await page.waitForStatus(/ready/);
  }
  const offer = await caller.evaluate('offer()');
  const answer = await callee.evaluate((description) => window.answer(description), offer);
  await caller.evaluate((description) => window.accept(description).then(() => true), answer);
}

async function provesTheCall(t, [one, itsColor], [other, otherColor]) {
  const time = stopwatch();
  await call(one, other);
  await Promise.all([seesColor(one, otherColor), seesColor(other, itsColor)]);
  t.diagnostic(`each saw the other's color ${time()} after the call began`);
  const before = await Promise.all([one, other].map(framesDecoded));
  await Promise.all([framesRise(one), framesRise(other), soundArrives(one), soundArrives(other)]);
  const later = await Promise.all([one, other].map(framesDecoded));
  const sound = await Promise.all([one, other].map(audioReceived));
  t.diagnostic(`frames ${before} → ${later}, sound ${JSON.stringify(sound)} after ${time()}`);
  assert.ok(await one.has('video', 'Partner') && await other.has('video', 'You'), 'the videos have their names');
  for (const page of [one, other]) assert.deepEqual(page.complaints(), []);
}

testInFull('two Chromium pages see and hear each other', 'roulette.test.mjs "two strangers in Chromium meet"', async (t) => {
  const browser = await chromium();
  const red = await open(t, browser, { color: 'red' });
  const green = await open(t, browser, { color: 'green', tone: 880 });
  assert.equal(await remoteColor(red), 'no frame');
  await provesTheCall(t, [red, 'red'], [green, 'green']);
});

testInFull('Chromium and Firefox see and hear each other',
  'roulette.test.mjs "a stranger in Chromium and one in Firefox meet"', async (t) => {
  const blue = await open(t, await chromium(), { color: 'blue' });
  const yellow = await open(t, await firefox(), { color: 'yellow' });
  await provesTheCall(t, [blue, 'blue'], [yellow, 'yellow']);
});

testInFull('two Firefox pages see and hear each other', 'routed.test.mjs "two Chromium pages and one Firefox page"', async (t) => {
  const browser = await firefox();
  const cyan = await open(t, browser, { color: 'cyan' });
  const red = await open(t, browser, { color: 'red' });
  await provesTheCall(t, [cyan, 'cyan'], [red, 'red']);
});

testInFull('a Chromium process shows the picture and plays the tone of its files', 'no other test uses such files', async (t) => {
  const folder = await temporaryFolder('media');
  t.after(() => removeFolder(folder));
  const picture = await writePicture(path.join(folder, 'magenta.y4m'), 'magenta');
  const sound = await writeTone(path.join(folder, 'tone.wav'));
  const browser = await launchChromium({ picture, sound });
  t.after(() => browser.close());
  const sender = await open(t, browser, { label: 'sending' });
  const receiver = await open(t, browser, { color: 'green' });
  await provesTheCall(t, [sender, 'magenta'], [receiver, 'green']);
});

for (const [name, launch] of [['Chromium', chromium], ['Firefox', firefox]]) {
  // Tests of Firefox's driver run only in the full tier, because product tests use Firefox in every run. Tests of Chromium's
  // driver always run.
  const testEngine = (title, body) => (name === 'Chromium' ? test(title, body) : testInFull(title, 'the same test in Chromium', body));

  testEngine(`${name} finds controls by role and name, skips hidden ones, and clicks them once they stand still`, async (t) => {
    const page = await open(t, await launch(), { color: 'red' });
    assert.equal((await page.query('button', 'Start')).length, 1);
    assert.equal(await page.has('button', 'Star'), false, 'names match as a whole');
    await page.click('button', 'Start');
    await page.waitForStatus(/^ready$/);
    await page.click('checkbox', 'I agree');
    const box = await page.find('checkbox', 'I agree');
    assert.equal(await box.evaluate(function () { return this.checked; }), true);
  });

  testEngine(`${name} says why a control cannot be clicked yet, and clicks it once it can`, async (t) => {
    const page = await open(t, await launch());
    const missing = page.find('button', 'Nowhere', { timeout: 300 });
    await assert.rejects(missing, /until there is a button "Nowhere".*there is none[^]*button "Start"/);
    const later = page.click('button', 'Later');
    await page.evaluate(() => { document.querySelector('#late').disabled = false; });
    await later;
  });

  testEngine(`${name} repeats a click that missed, because the page has moved the control under the mouse`, async (t) => {
    const page = await open(t, await launch());
    await page.evaluate(() => {
      const [target, decoy] = ['Target', 'Decoy'].map((label) => Object.assign(document.createElement('button'), { textContent: label }));
      window.clicked = [];
      for (const button of [target, decoy]) button.onclick = () => window.clicked.push(button.textContent);
      for (const button of [target, decoy]) button.onpointerdown = () => window.clicked.push(`pressed ${button.textContent}`);
      // As if a list above it had just been filled.
      target.addEventListener('pointermove', () => target.before(decoy), { once: true });
      document.querySelector('main').prepend(Object.assign(document.createElement('div'), { style: 'display: grid' }));
      document.querySelector('main').firstChild.append(target);
    });
    await page.click('button', 'Target');
    assert.deepEqual(await page.evaluate('window.clicked'), ['pressed Target', 'Target']);
  });

  testEngine(`${name} clicks twice as a double click, and drags with the button held`, async (t) => {
    const page = await open(t, await launch());
    const button = await page.find('button', 'Start');
    await page.evaluate(() => {
      window.heard = [];
      const keep = ({ type, button, buttons, clientX, clientY }) => window.heard.push([type, button, buttons, Math.round(clientX), Math.round(clientY)]);
      for (const type of ['dblclick', 'pointerdown', 'pointermove', 'pointerup']) window.addEventListener(type, keep);
    });
    await button.click({ times: 2 });
    assert.deepEqual((await page.evaluate('window.heard')).map(([type]) => type).filter((type) => type !== 'pointermove'),
      ['pointerdown', 'pointerup', 'pointerdown', 'pointerup', 'dblclick']);
    await page.evaluate('void (window.heard = [])');
    await button.drag(100, 40);
    const dragged = (await page.evaluate('window.heard')).filter(([type, , buttons]) => type !== 'pointermove' || buttons);
    const [, , , x, y] = dragged[0];
    assert.deepEqual(dragged, [
      ['pointerdown', 0, 1, x, y], ['pointermove', -1, 1, x + 50, y + 20], ['pointermove', -1, 1, x + 100, y + 40], ['pointerup', 0, 0, x + 100, y + 40],
    ]);
  });

  testEngine(`${name} types, replaces and moves the focus by keyboard`, async (t) => {
    const page = await open(t, await launch());
    await page.fill('textbox', 'Name', 'Zoë €');
    await page.press('Enter');
    await page.waitForStatus(/^hello Zoë €$/);
    await page.press('Shift+Tab');
    assert.equal(await page.evaluate('document.activeElement.id'), 'start');
    await page.press('Tab');
    await page.press('Tab');
    await page.press('Space');
    const box = await page.find('checkbox', 'I agree');
    assert.equal(await box.evaluate(function () { return this.checked; }), true);
  });

  testInFull(`${name} takes screenshots in both widths, light and dark, and restores its size`,
    'the first tier takes no photographs', async (t) => {
    const page = await open(t, await launch(), { color: 'green' });
    const state = `drivers-${name.toLowerCase()}`;
    assert.deepEqual(await inspect(page, state), []);
    const names = ['360-light', '360-dark', '1280-light', '1280-dark'];
    const images = await Promise.all(names.map((look) => readFile(path.join(screenshotFolder, `${state}-${look}.png`))));
    // A PNG's width is the four bytes from offset 16.
    assert.deepEqual(images.map((png) => png.readUInt32BE(16)), [360, 360, 1280, 1280]);
    assert.notDeepEqual(images[0], images[1], 'the dark screenshot must differ from the light one');
    assert.deepEqual(await page.evaluate('[innerWidth, matchMedia("(prefers-color-scheme: dark)").matches]'), [1280, false]);
  });

  testEngine(`${name} with axe finds a planted fault`, async (t) => {
    const page = await open(t, await launch());
    assert.deepEqual(await axe(page), []);
    await page.evaluate(() => {
      const planted = '<button></button><p style="color:#ddd;background:#fff">pale</p>';
      document.querySelector('main').insertAdjacentHTML('beforeend', planted);
    });
    const faults = await axe(page);
    assert.equal(faults.length, 2, faults.join('\n'));
    assert.match(faults.join('\n'), /button-name[^]*color-contrast|color-contrast[^]*button-name/);
  });

  testEngine(`${name} keeps the page's errors and warnings`, async (t) => {
    const page = await open(t, await launch());
    await page.evaluate(() => {
      console.error('on the console');
      queueMicrotask(() => { throw new Error('nobody caught this'); });
      Promise.reject(new Error('nobody awaited this'));
    });
    await page.until('the complaints have arrived', () => page.complaints().length >= 3);
    assert.match(page.complaints().join('\n'), /nobody caught this/);
    assert.match(page.complaints().join('\n'), /nobody awaited this/);
    assert.match(page.complaints().join('\n'), /on the console/);
    await assert.rejects(page.evaluate('nonsense.at.all'), /nonsense/);
  });

  testEngine(`${name} gives pages their own storage, unless they share`, async (t) => {
    const browser = await launch();
    const page = await open(t, browser);
    await page.evaluate("localStorage.setItem('who', 'me')");
    const stranger = await open(t, browser);
    const sibling = await open(t, browser, { sharing: page });
    assert.equal(await stranger.evaluate("localStorage.getItem('who')"), null);
    assert.equal(await sibling.evaluate("localStorage.getItem('who')"), 'me');
    for (const each of [page, stranger, sibling]) assert.equal(await each.evaluate('document.visibilityState'), 'visible');
  });
}
