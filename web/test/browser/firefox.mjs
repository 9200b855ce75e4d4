// Firefox through WebDriver BiDi.
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { character, chord } from './keyboard.mjs';
import { Page, PageError } from './page.mjs';
import { Child, removeFolder, temporaryFolder } from './process.mjs';
import { CommandError, RemoteControl } from './remote-control.mjs';
import { screenScale } from './tier.mjs';

const startTimeout = 60_000;

const preferences = {
  'media.navigator.streams.fake': true,
  'media.navigator.permission.disabled': true,
  'media.autoplay.default': 0,
  // Turn off automatic downloads, prompts and telemetry.
  'app.update.enabled': false,
  'app.normandy.enabled': false,
  'browser.aboutwelcome.enabled': false,
  'browser.safebrowsing.malware.enabled': false,
  'browser.safebrowsing.phishing.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'browser.startup.page': 0,
  'browser.newtabpage.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'extensions.update.enabled': false,
  'media.gmp-manager.updateEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'data:,',
  'toolkit.telemetry.enabled': false,
  // Windows that are not on top keep running at full speed.
  'dom.min_background_timeout_value': 4,
  'dom.timeout.enable_budget_timer_throttling': false,
  'widget.windows.window_occlusion_tracking.enabled': false,
  'layout.css.devPixelsPerPx': String(screenScale),
};

/**
 * Starts a separate browser, with its own process group and profile.
 *
 * @param {object} [options]
 * @param {Record<string, unknown>} [options.prefs] more preferences
 * @param {import('./namespace.mjs').Machine} [options.machine] where it runs
 */
export async function launchFirefox({ prefs = {}, machine } = {}) {
  const profile = await temporaryFolder('firefox');
  const lines = Object.entries({ ...preferences, ...prefs })
    .map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`);
  await writeFile(path.join(profile, 'user.js'), `${lines.join('\n')}\n`);
  const child = new Child(process.env.CONFAB_FIREFOX ?? 'firefox-esr', [
    // System access is needed only to choose between light and dark mode, which BiDi does not support yet.
    '--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0', '--remote-allow-system-access',
    // Use a separate home directory, so that Firefox creates no folders in the user's.
  ], { env: { MOZ_CRASHREPORTER_DISABLE: '1', MOZ_HEADLESS: '1', HOME: profile }, machine });
  try {
    const [, url] = await child.line(/^WebDriver BiDi listening on (ws:\S+)/, startTimeout);
    const control = await RemoteControl.connect(`${url}/session`, machine);
    await control.send('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } });
    await control.send('session.subscribe', { events: ['log.entryAdded'] });
    return new Firefox(child, profile, control);
  } catch (error) {
    await child.kill();
    await removeFolder(profile);
    throw error;
  }
}

class Firefox {
  name = 'Firefox';
  #pages = new Map();
  /** The open pages by profile. Closing the last page of a profile removes the profile. */
  #tenants = new Map();

  constructor(child, profile, control) {
    Object.assign(this, { child, profile, control });
    control.on('log.entryAdded', (entry) => this.#pages.get(entry.source.context)?.hear(entry));
  }

  /**
   * Opens a page in a new profile, or in the profile of `options.sharing`.
   * @param {import('./page.mjs').PageOptions} [options]
   */
  async newPage(options = {}) {
    const { control } = this;
    const userContext = options.sharing?.userContext ?? (await control.send('browser.createUserContext')).userContext;
    this.#tenants.set(userContext, (this.#tenants.get(userContext) ?? 0) + 1);
    // Open a separate window, because of two tabs in one window the older one is hidden.
    const { context } = await control.send('browsingContext.create', { type: 'window', userContext });
    const page = new FirefoxPage(this, { context, userContext }, options);
    this.#pages.set(context, page);
    // Without a sound card, Firefox's AudioContext never starts, so the page's microphone is the browser's own fake one.
    for (const script of Page.scripts(options, { nativeSound: true })) {
      await control.send('script.addPreloadScript', { functionDeclaration: `() => { ${script}; }`, contexts: [context] });
    }
    await page.resize(page.width, page.height);
    await page.setDark(page.dark);
    return page;
  }

  /** Runs code with the browser's own privileges. */
  async asBrowser(expression) {
    const { contexts } = await this.control.send('browsingContext.getTree', { 'moz:scope': 'chrome' });
    const target = { context: contexts[0].context };
    const answer = await this.control.send('script.evaluate', { expression, target, awaitPromise: true });
    if (answer.type === 'exception') throw new Error(answer.exceptionDetails.text);
  }

  /** Called by a page that has closed. */
  async release({ context, userContext }) {
    this.#pages.delete(context);
    const left = this.#tenants.get(userContext) - 1;
    this.#tenants.set(userContext, left);
    if (left === 0) await this.control.send('browser.removeUserContext', { userContext });
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

class FirefoxPage extends Page {
  constructor(browser, ids, options) {
    super(browser, options);
    Object.assign(this, ids);
  }

  send(method, params) {
    return this.browser.control.send(method, { context: this.context, ...params });
  }

  hear({ type, level, text }) {
    if (type === 'javascript' && level === 'error') this.exceptions.push(text);
    else this.hearConsole(level, text);
  }

  async navigate(url) {
    await this.send('browsingContext.navigate', { url, wait: 'complete' });
  }

  async reload() {
    await this.send('browsingContext.reload', { wait: 'complete' });
  }

  run(expression) {
    return this.#value('script.evaluate', { expression });
  }

  runOn(sharedId, functionDeclaration) {
    return this.#value('script.callFunction', { functionDeclaration, this: { sharedId } });
  }

  async #value(method, params) {
    const target = { context: this.context };
    let answer;
    try {
      answer = await this.browser.control.send(method, { ...params, target, awaitPromise: true });
    } catch (error) {
      throw betweenDocuments(error) ? new PageError(error.message) : error;
    }
    if (answer.type === 'exception') throw new PageError(answer.exceptionDetails.text);
    return answer.result.value;
  }

  async query(role, name) {
    // ARIA has no role for videos, so Firefox cannot find them by role.
    if (role === 'video') {
      const selector = name === undefined ? 'video' : `video[aria-label=${JSON.stringify(name)}]`;
      return this.#locate({ type: 'css', value: `${selector}:not([aria-hidden=true], [hidden])` });
    }
    const found = await this.#locate({ type: 'accessibility', value: name === undefined ? { role } : { role, name } });
    if (role !== 'textbox' || name === undefined) return found;
    // ARIA has no role for password fields either. Chromium finds them as text boxes.
    const labeled = `@id = //label[normalize-space() = ${JSON.stringify(name)}]/@for`;
    return [...found, ...await this.#locate({ type: 'xpath', value: `//input[@type = 'password' and ${labeled}]` })];
  }

  async #locate(locator) {
    try {
      const { nodes } = await this.send('browsingContext.locateNodes', { locator });
      return nodes.map(({ sharedId }) => sharedId);
    } catch (error) {
      throw betweenDocuments(error) ? new PageError(error.message) : error;
    }
  }

  clickAt(x, y, times = 1) {
    const click = [{ type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 }];
    return this.#point(moveTo(x, y), ...Array(times).fill(click).flat());
  }

  dragAt(x, y, byX, byY) {
    return this.#point(
      moveTo(x, y), { type: 'pointerDown', button: 0 },
      moveTo(x + byX / 2, y + byY / 2), moveTo(x + byX, y + byY), { type: 'pointerUp', button: 0 },
    );
  }

  #point(...actions) {
    return this.#perform({ type: 'pointer', id: 'mouse', parameters: { pointerType: 'mouse' }, actions });
  }

  async type(text) {
    await this.#keys([...text].flatMap((letter) => stroke(character(letter))));
  }

  async press(description) {
    const { key, held } = chord(description);
    await this.#keys([
      ...held.map(({ bidi }) => ({ type: 'keyDown', value: bidi })),
      ...stroke(key),
      ...held.reverse().map(({ bidi }) => ({ type: 'keyUp', value: bidi })),
    ]);
  }

  #keys(actions) {
    return this.#perform({ type: 'key', id: 'keyboard', actions });
  }

  #perform(source) {
    return this.send('input.performActions', { actions: [source] });
  }

  resize(width, height) {
    return this.send('browsingContext.setViewport', { viewport: { width, height } });
  }

  /** Sets light or dark mode for the whole browser. In Chromium, the setting applies only to the page. */
  setDark(dark) {
    return this.browser.asBrowser(`Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', ${dark ? 0 : 1})`);
  }

  async capture() {
    const { data } = await this.send('browsingContext.captureScreenshot', { origin: 'viewport' });
    return Buffer.from(data, 'base64');
  }

  async close() {
    if (this.closed || this.browser.child.ended) return;
    this.closed = true;
    await this.send('browsingContext.close');
    await this.browser.release(this);
  }
}

function moveTo(x, y) {
  return { type: 'pointerMove', x: Math.round(x), y: Math.round(y) };
}

function stroke({ bidi }) {
  return [{ type: 'keyDown', value: bidi }, { type: 'keyUp', value: bidi }];
}

/** True if a navigation removed the document during the command. */
function betweenDocuments(error) {
  return error instanceof CommandError
    && (['no such frame', 'no such node', 'no such handle'].includes(error.code)
      || error.code === 'unknown error' && /AbortError|destroyed|inactive/i.test(error.message));
}
