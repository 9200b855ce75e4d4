// Chromium through the Chrome DevTools Protocol.
import { Page, PageError } from './page.mjs';
import { character, chord } from './keyboard.mjs';
import { Child, removeFolder, temporaryFolder } from './process.mjs';
import { CommandError, RemoteControl } from './remote-control.mjs';
import { isFull, screenScale } from './tier.mjs';
import { NotYet, within } from './wait.mjs';

export const wholeChromium = process.env.CONFAB_CHROMIUM ?? 'chromium';
/**
 * The first tier uses Chromium without windows, tabs and menus: the same engine, with a second less of CPU time per page.
 */
const usualChromium = process.env.CONFAB_CHROMIUM ?? (isFull ? wholeChromium : 'chromium-headless-shell');
const startTimeout = 60_000;
const loadTimeout = 60_000;

/**
 * Starts a separate browser, with its own process group and profile.
 *
 * @param {object} [options]
 * @param {string} [options.picture] a .y4m file that every page's camera shows, unless the page has a color
 * @param {string} [options.sound] a .wav file that every page's microphone plays, unless the page has a color
 * @param {string[]} [options.flags] more command line flags
 * @param {string} [options.command]
 * @param {import('./namespace.mjs').Machine} [options.machine] where it runs
 */
export async function launchChromium({ picture, sound, flags = [], command = usualChromium, machine } = {}) {
  const profile = await temporaryFolder('chromium');
  const child = new Child(command, [
    '--headless', '--remote-debugging-port=0', `--user-data-dir=${profile}`,
    // With only the first flag, requests for a camera fail without asking. With only the second, there is no camera.
    '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream',
    ...(picture ? [`--use-file-for-fake-video-capture=${picture}`] : []),
    ...(sound ? [`--use-file-for-fake-audio-capture=${sound}`] : []),
    // Keep several windows active at the same time.
    '--disable-backgrounding-occluded-windows', '--disable-renderer-backgrounding', '--disable-background-timer-throttling',
    '--no-first-run', '--no-default-browser-check', '--disable-background-networking', '--disable-component-update',
    '--disable-sync', '--disable-extensions', '--disable-gpu', '--disable-dev-shm-usage', '--mute-audio', '--hide-scrollbars',
    // A crash reporter would start a separate process group and outlive the browser.
    '--disable-breakpad', '--disable-crash-reporter',
    // Chromium's sandbox refuses to run as root, the usual user in a container.
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    ...flags, 'about:blank',
  ], { machine });
  try {
    const [, url] = await child.line(/^DevTools listening on (ws:\S+)/, startTimeout);
    return new Chromium(child, profile, await RemoteControl.connect(url, machine));
  } catch (error) {
    await child.kill();
    await removeFolder(profile);
    throw error;
  }
}

class Chromium {
  name = 'Chromium';
  #pages = new Map();
  /** The open pages by profile. Closing the last page of a profile removes the profile. */
  #tenants = new Map();

  constructor(child, profile, control) {
    Object.assign(this, { child, profile, control });
    for (const event of pageEvents) {
      control.on(event, (params, sessionId) => this.#pages.get(sessionId)?.hear(event, params));
    }
    control.on('Target.detachedFromTarget', ({ sessionId }) => this.#pages.get(sessionId)?.reportGone());
  }

  /**
   * Opens a page in a new profile, or in the profile of `options.sharing`.
   * @param {import('./page.mjs').PageOptions} [options]
   */
  async newPage(options = {}) {
    const { control } = this;
    const browserContextId = options.sharing?.browserContextId
      ?? (await control.send('Target.createBrowserContext', { disposeOnDetach: true })).browserContextId;
    this.#tenants.set(browserContextId, (this.#tenants.get(browserContextId) ?? 0) + 1);
    // Open a separate window, because of two tabs in one window the older one is hidden.
    const { targetId } = await control.send('Target.createTarget', { url: 'about:blank', browserContextId, newWindow: true });
    const { sessionId } = await control.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new ChromiumPage(this, { targetId, sessionId, browserContextId }, options);
    this.#pages.set(sessionId, page);
    await page.prepare(Page.scripts(options));
    return page;
  }

  /** Called by a page that has closed. */
  async release({ sessionId, browserContextId }) {
    this.#pages.delete(sessionId);
    const left = this.#tenants.get(browserContextId) - 1;
    this.#tenants.set(browserContextId, left);
    if (left === 0) await this.control.send('Target.disposeBrowserContext', { browserContextId });
  }

  /** Sends SIGKILL, as when the machine loses power. No page can notify its server. */
  kill() {
    return this.child.kill();
  }

  /** Ends the browser and removes its profile. Also needed after `kill`. */
  async close() {
    this.control.close();
    await this.child.kill();
    await removeFolder(this.profile);
  }
}

const pageEvents = [
  'Runtime.consoleAPICalled', 'Runtime.exceptionThrown', 'Log.entryAdded', 'Page.lifecycleEvent',
  'Inspector.targetCrashed',
];

class ChromiumPage extends Page {
  /** The JavaScript context of the document; undefined: the one of the page itself. */
  contextId;
  #loaded = new Set();
  #onLoad = new Set();

  constructor(browser, ids, options) {
    super(browser, options);
    Object.assign(this, ids);
    this.gone = new Promise((resolve) => { this.reportGone = resolve; });
  }

  send(method, params) {
    return this.browser.control.send(method, params, { sessionId: this.sessionId });
  }

  async prepare(scripts) {
    await this.send('Page.enable');
    await this.send('Page.setLifecycleEventsEnabled', { enabled: true });
    for (const script of scripts) await this.send('Page.addScriptToEvaluateOnNewDocument', { source: script });
    await this.send('Runtime.enable');
    await this.send('Log.enable');
    // Give every page focus events and a caret, as if its window were focused.
    await this.send('Emulation.setFocusEmulationEnabled', { enabled: true });
    await this.resize(this.width, this.height);
    await this.setDark(this.dark);
  }

  hear(event, params) {
    switch (event) {
      case 'Runtime.consoleAPICalled': {
        const text = params.args.map((value) => value.value ?? value.description ?? value.type).join(' ');
        this.hearConsole(params.type, text);
        break;
      }
      case 'Log.entryAdded':
        this.hearConsole(params.entry.level, `${params.entry.text} ${params.entry.url ?? ''}`);
        break;
      case 'Runtime.exceptionThrown': {
        const { exception, text } = params.exceptionDetails;
        this.exceptions.push(exception?.description ?? text);
        break;
      }
      case 'Page.lifecycleEvent':
        if (params.name !== 'load') break;
        this.#loaded.add(params.loaderId);
        for (const notify of this.#onLoad) notify();
        break;
      case 'Inspector.targetCrashed':
        this.exceptions.push('the page crashed');
        break;
    }
  }

  async navigate(url) {
    const { loaderId, errorText } = await this.send('Page.navigate', { url });
    if (errorText) throw new Error(`${url} could not be opened: ${errorText}`);
    // Only the fragment of the address changed, so nothing is loaded.
    if (loaderId) await this.#nextLoad(() => this.#loaded.has(loaderId), url);
  }

  async reload() {
    const before = this.#loaded.size;
    await this.send('Page.reload');
    await this.#nextLoad(() => this.#loaded.size > before, 'the page, again,');
  }

  async #nextLoad(condition, what) {
    let notify;
    const loaded = new Promise((resolve) => {
      notify = () => condition() && resolve();
      this.#onLoad.add(notify);
      notify();
    });
    await within(loaded, loadTimeout, () => `${what} has not finished loading (${this.label})`)
      .finally(() => this.#onLoad.delete(notify));
  }

  async run(expression) {
    return this.#value(() => this.send('Runtime.evaluate', {
      expression, contextId: this.contextId, awaitPromise: true, returnByValue: true, userGesture: false,
    }));
  }

  async runOn(objectId, functionDeclaration) {
    return this.#value(() => this.send('Runtime.callFunctionOn', {
      objectId, functionDeclaration, awaitPromise: true, returnByValue: true,
    }));
  }

  async #value(command) {
    let answer;
    try {
      answer = await command();
    } catch (error) {
      // -32000 means that a navigation destroyed the context, or that there is no context yet.
      if (error instanceof CommandError && error.code === -32000) throw new PageError(error.message);
      throw error;
    }
    const { result, exceptionDetails } = answer;
    if (exceptionDetails) throw new PageError(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async query(ariaRole, accessibleName) {
    // ARIA has no role for videos, so this is Chromium's own role. The name of a video without a source is "Unable to play
    // media."
    const role = ariaRole === 'video' ? 'Video' : ariaRole;
    try {
      const { result } = await this.send('Runtime.evaluate', { expression: 'document', contextId: this.contextId });
      const { nodes } = await this.send('Accessibility.queryAXTree', { objectId: result.objectId, role, accessibleName });
      // The query also finds elements that are hidden from assistive technology. The accessibility tree marks these.
      const exposed = nodes.filter((node) => !node.ignored && node.backendDOMNodeId);
      return await Promise.all(exposed.map(async ({ backendDOMNodeId }) => {
        const { object } = await this.send('DOM.resolveNode', { backendNodeId: backendDOMNodeId, executionContextId: this.contextId });
        return object.objectId;
      }));
    } catch (error) {
      if (error instanceof CommandError && error.code === -32000) throw new PageError(error.message);
      throw error;
    }
  }

  async clickAt(x, y, times = 1) {
    await this.#mouse('mouseMoved', { x, y });
    // All are sent at once: on a busy machine, answers could take longer than a double click may.
    await Promise.all(Array.from({ length: times }, (_, index) => index + 1).flatMap((clickCount) => [
      this.#mouse('mousePressed', { x, y, clickCount }), this.#mouse('mouseReleased', { x, y, clickCount }),
    ]));
  }

  async dragAt(x, y, byX, byY) {
    await this.#mouse('mouseMoved', { x, y });
    await this.#mouse('mousePressed', { x, y, clickCount: 1 });
    for (const share of [0.5, 1]) await this.#mouse('mouseMoved', { x: x + byX * share, y: y + byY * share, buttons: 1 });
    await this.#mouse('mouseReleased', { x: x + byX, y: y + byY, clickCount: 1 });
  }

  #mouse(type, members) {
    return this.send('Input.dispatchMouseEvent', { type, button: members.clickCount || members.buttons ? 'left' : 'none', ...members });
  }

  async type(text) {
    for (const letter of text) await this.#stroke(character(letter), 0);
  }

  async press(description) {
    const { key, held } = chord(description);
    const bits = held.reduce((sum, { bit }) => sum | bit, 0);
    for (const modifier of held) await this.#key('rawKeyDown', modifier, bits);
    await this.#stroke(key, bits);
    for (const modifier of held.reverse()) await this.#key('keyUp', modifier, 0);
  }

  async #stroke(key, bits) {
    // While Control or Meta is held, a letter is a command and types nothing.
    const text = bits & 0b0110 ? undefined : key.text;
    await this.#key(text ? 'keyDown' : 'rawKeyDown', key, bits, text);
    await this.#key('keyUp', key, bits);
  }

  #key(type, { key, code, virtual }, bits, text) {
    return this.send('Input.dispatchKeyEvent', { type, key, code, windowsVirtualKeyCode: virtual, modifiers: bits, text });
  }

  resize(width, height) {
    return this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: screenScale, mobile: false });
  }

  setDark(dark) {
    const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }];
    return this.send('Emulation.setEmulatedMedia', { features });
  }

  async capture() {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
    return Buffer.from(data, 'base64');
  }

  /** Waits until the page shows another page of this address in a frame, and returns it. */
  async frame(url) {
    const id = await this.until(`it shows ${url} in a frame`, async () => {
      const { frameTree } = await this.send('Page.getFrameTree');
      const found = (frameTree.childFrames ?? []).find(({ frame }) => frame.url === url);
      if (!found) throw new NotYet(`its frames are ${(frameTree.childFrames ?? []).map(({ frame }) => frame.url).join(', ') || 'none'}`);
      return found.frame.id;
    });
    const { executionContextId } = await this.send('Page.createIsolatedWorld', { frameId: id });
    return new ChromiumFrame(this, executionContextId);
  }

  async close() {
    if (this.closed || this.browser.child.ended) return;
    this.closed = true;
    await this.send('Page.close');
    await within(this.gone, loadTimeout, () => `the tab has not closed yet (${this.label})`);
    await this.browser.release(this);
  }
}

/**
 * A page in the only frame of another page. A test can do with it what it does with pages, except load, resize and close it. Works only
 * for frames of the same site (same host, any port): others run in their own process. Does not see the variables of its scripts.
 */
class ChromiumFrame extends ChromiumPage {
  constructor(outer, contextId) {
    const { browser, targetId, sessionId, browserContextId } = outer;
    super(browser, { targetId, sessionId, browserContextId });
    Object.assign(this, { outer, contextId, label: `the frame in the ${outer.label}`, console: outer.console, exceptions: outer.exceptions });
  }

  async clickAt(x, y, times) {
    const { left, top } = await this.outer.evaluate(() => document.querySelector('iframe').getBoundingClientRect());
    return super.clickAt(left + x, top + y, times);
  }
}
