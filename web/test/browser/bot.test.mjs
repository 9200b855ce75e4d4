// `confab bot`, a client of the Swift SDK: a page meets it, and each receives the media of the other. The page gets answers, and is
// recorded. ffmpeg reads the recordings.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { sharedBrowsers } from './browsers.mjs';
import { colorName, framesRise, seesColor, soundArrives } from './media.mjs';
import { Child, removeFolder, temporaryFolder } from './process.mjs';
import { arrive, assertNoComplaints, begin, keepReceiving, reads, says, see, serve, write } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { NotYet, until } from './wait.mjs';

const { chromium } = sharedBrowsers();
const run = promisify(execFile);

/** The colors of the sample's video, by the names of `media.mjs`. */
const sampleColor = 'cyan';
const lineTimeout = 30_000;

async function folder(t) {
  const made = await temporaryFolder('bot');
  t.after(() => removeFolder(made));
  return made;
}

/** Starts a bot, which ends with the test. */
function startBot(t, server, ...args) {
  const bot = new Child(server.binary, ['bot', '--server', server.url, ...args]);
  t.after(() => bot.kill());
  return bot;
}

/** Stops a bot like Ctrl-C, and checks its exit status. */
async function stop(bot) {
  const { code } = await bot.kill('SIGINT');
  assert.equal(code, 0, `the bot ended with status ${code}:\n${bot.tail()}`);
}

/** Returns how much the bot has received of each stream that has ended. */
function received(bot) {
  const lines = bot.log.map((line) => line.match(/Received (\d+) video frames and (\d+) audio packets/)).filter(Boolean);
  return lines.map(([, frames, packets]) => ({ frames: Number(frames), packets: Number(packets) }));
}

/** Decodes a video file. Returns the red, green and blue of each frame's middle pixel. */
async function framesOf(file) {
  const { stdout, stderr } = await run('ffmpeg', [
    '-nostdin', '-v', 'error', '-i', file, '-vf', 'crop=16:16,scale=1:1', '-fps_mode', 'passthrough',
    // Two frames of a busy page may be closer together than its usual interval.
    '-enc_time_base', '1:90000', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-',
  ], { encoding: 'buffer', maxBuffer: 1 << 26 });
  assert.equal(String(stderr), '', `ffmpeg complains of ${file}: ${stderr}`);
  return Array.from({ length: Math.floor(stdout.length / 3) }, (_, index) => [...stdout.subarray(3 * index, 3 * index + 3)]);
}

/** Returns the number of audio samples in a file, and the loudest, from 0 to 1. */
async function soundOf(file) {
  const { stdout, stderr } = await run('ffmpeg', [
    '-nostdin', '-v', 'error', '-i', file, '-f', 's16le', '-ac', '1', '-ar', '48000', '-',
  ], { encoding: 'buffer', maxBuffer: 1 << 26 });
  assert.equal(String(stderr), '', `ffmpeg complains of ${file}: ${stderr}`);
  let loudest = 0;
  for (let index = 0; index + 1 < stdout.length; index += 2) loudest = Math.max(loudest, Math.abs(stdout.readInt16LE(index)));
  return { samples: stdout.length / 2, loudest: loudest / 32_768 };
}

/** Returns the recorded files with this extension. */
async function recorded(directory, ending) {
  return (await readdir(directory)).filter((name) => name.endsWith(ending)).map((name) => path.join(directory, name));
}

/** Waits for this many recorded videos with this many frames each, and returns the files. */
async function recordings(directory, frames, count = 1) {
  return until(`${count} recordings have ${frames} frames`, async () => {
    const files = await recorded(directory, '.ivf');
    if (files.length < count) throw new NotYet(`there are ${files.length} files`);
    for (const file of files) {
      // A file that is still being written may end in the middle of a frame, about which ffmpeg complains.
      const { length } = await framesOf(file).catch((error) => {
        throw new NotYet(`${path.basename(file)} cannot be read: ${error.message}`);
      });
      if (length < frames) throw new NotYet(`${path.basename(file)} has ${length}`);
    }
    return files;
  });
}

test('below a path of a site, a page meets the bot in the roulette, sees its film, gets answers, and is recorded', async (t) => {
  const server = await serve(t, {}, { path: '/video' });
  const directory = await folder(t);
  const bot = startBot(t, server, '--roulette', '--name', 'Robo', '--say', 'Nice to see you.', '--record', directory);
  await bot.line(/In the roulette; waiting for a partner/, lineTimeout);
  const page = await arrive(t, await chromium(), server.url, { color: 'magenta', tone: 440 });
  await begin(page, { name: 'Ann' });
  await see(page, sampleColor);
  assert.match(await page.status(), /Robo/);
  await bot.line(/Matched with a partner: Ann/, lineTimeout);
  await reads(page, '[bot] Hello! I am a bot: I play a video and repeat what you write. Nice to see you.');
  await write(page, 'Is anybody there?');
  await reads(page, '[bot] You wrote: Is anybody there?');
  t.diagnostic(`the page decoded ${await framesRise(page, { by: 30 })} frames of the bot`);
  await keepReceiving(page);
  await recordings(directory, 15);

  // After the bot leaves, the user waits for the next partner.
  await page.click('button', 'Stop');
  await bot.line(/The partner left/, lineTimeout);
  await bot.line(/Received \d+ video frames/, lineTimeout);
  const [fromPage] = received(bot);
  t.diagnostic(`the bot received ${fromPage.frames} video frames and ${fromPage.packets} audio packets`);
  assert.ok(fromPage.frames >= 15 && fromPage.packets >= 15);
  const green = await arrive(t, await chromium(), server.url, { color: 'green' });
  await begin(green);
  await see(green, sampleColor);
  await keepReceiving(green);
  await recordings(directory, 15, 2);
  assertNoComplaints(page, green);
  await stop(bot);

  const seen = [];
  for (const file of await recorded(directory, '.ivf')) {
    const names = (await framesOf(file)).map(colorName);
    t.diagnostic(`${path.basename(file)}: ${names.length} frames, ${[...new Set(names)]}`);
    assert.equal(new Set(names).size, 1, 'one color from the first frame to the last');
    seen.push(names[0]);
  }
  assert.deepEqual(seen.sort(), ['green', 'magenta']);
  for (const file of await recorded(directory, '.ogg')) {
    const sound = await soundOf(file);
    t.diagnostic(`${path.basename(file)}: ${(sound.samples / 48_000).toFixed(2)} s, up to ${sound.loudest.toFixed(2)}`);
    assert.ok(sound.samples > 24_000 && sound.loudest > 0.05, 'the tone was recorded');
  }
});

test('a custom film is seen and heard at any time, and repeats', async (t) => {
  const server = await serve(t);
  const directory = await folder(t);
  const film = path.join(directory, 'film');
  // Only the first frame is a keyframe: a late subscriber needs it again.
  await run('ffmpeg', [
    '-nostdin', '-v', 'error', '-f', 'lavfi', '-i', 'color=c=red:s=640x360:r=20', '-t', '1', '-c:v', 'libvpx', '-g', '999',
    '-auto-alt-ref', '0', '-pix_fmt', 'yuv420p', `${film}.ivf`,
  ]);
  await run('ffmpeg', [
    '-nostdin', '-v', 'error', '-f', 'lavfi', '-i', 'sine=frequency=600:duration=1:sample_rate=48000', '-c:a', 'libopus', `${film}.ogg`,
  ]);
  const session = await server.command('session', 'create', '--media', 'routed');
  const token = (role) => server.command('token', 'create', '--session', session, '--role', role);
  const bot = startBot(t, server, '--session', session, '--token', await token('publisher'), '--publish', film);
  await bot.line(/In the session/, lineTimeout);
  for (const label of ['the first', 'who comes later']) {
    const page = await (await chromium()).newPage();
    t.after(() => page.close());
    await page.goto(`${server.url}/try#session=${session}&token=${await token('subscriber')}`);
    await page.press('Tab');
    await seesColor(page, 'red');
    t.diagnostic(`${label} sees it`);
    await soundArrives(page);
    // The video has 20 frames: it repeats.
    if (label === 'the first') await framesRise(page, { by: 25 });
    assertNoComplaints(page);
  }
  await stop(bot);
});

testInFull('a recording is complete even if the bot was killed',
  'RobotsTests "of video is a valid file after each packet", "decodes a recording truncated by killing the program"', async (t) => {
  const server = await serve(t);
  const directory = await folder(t);
  const session = await server.command('session', 'create', '--media', 'routed');
  const token = () => server.command('token', 'create', '--session', session, '--role', 'publisher');
  const shown = startBot(t, server, '--session', session, '--token', await token());
  await shown.line(/In the session/, lineTimeout);
  const recorder = startBot(t, server, '--session', session, '--token', await token(), '--record', directory);
  const [file] = await recordings(directory, 30);
  await recorder.kill('SIGKILL');
  const names = (await framesOf(file)).map(colorName);
  assert.ok(names.length >= 30);
  assert.deepEqual([...new Set(names)], [sampleColor]);
  const [sound] = await recorded(directory, '.ogg');
  assert.ok((await soundOf(sound)).samples >= 24_000);
  await stop(shown);
});

testInFull('several bots are not matched with each other, and each meets a page',
  'RobotsTests "wait one at a time", "detect that they were matched with each other"', async (t) => {
  const server = await serve(t);
  const bots = startBot(t, server, '--roulette', '--count', '2');
  await bots.line(/In the roulette/, lineTimeout);
  const pages = [];
  for (const color of ['red', 'blue']) {
    const page = await arrive(t, await chromium(), server.url, { color });
    await begin(page);
    await see(page, sampleColor);
    pages.push(page);
  }
  await Promise.all(pages.map((page) => page.waitForStatus(says.talking)));
  const met = bots.log.filter((line) => line.includes('Matched with a partner'));
  assert.equal(met.length, 2, bots.log.join('\n'));
  await stop(bots);
});

test('invalid arguments print a clear error', async (t) => {
  const server = await serve(t);
  const session = await server.command('session', 'create', '--media', 'relayed');
  const token = await server.command('token', 'create', '--session', session);
  const cases = [
    [['--session', session, '--token', token], /relayed, but the bot needs a routed one/],
    [['--session', session, '--token', 'nonsense'], /Malformed token/],
    [['--roulette', '--publish', 'nothing.ivf'], /nothing\.ivf does not exist/],
    [['--roulette', '--publish', server.configuration], /neither an IVF file with VP8 nor an Ogg file with Opus/],
    [['--roulette', '--server', 'http://127.0.0.1:9'], /cannot be reached/],
    [[], /--roulette or --session/],
  ];
  await Promise.all(cases.map(async ([args, sentence]) => {
    const bot = startBot(t, server, ...args);
    const { code } = await bot.exited;
    await bot.silent;
    assert.notEqual(code, 0, args.join(' '));
    assert.match(bot.log.join('\n'), sentence);
  }));
});
