// The checks of the iOS app that need no compiler. `scripts/check-ios` runs this.
//
//   node scripts/ios-check.mjs            prints the faults
//   node scripts/ios-check.mjs mistakes   makes each mistake of ios/Mistakes/edits.json in a copy, and prints what was not found
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { localizedCalls, swiftFiles, textsIn } from './ios-texts.mjs';

// A path in place of the command is the root of a copy, for the mistakes.
const own = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const root = process.argv[3] ?? own;
const ios = join(root, 'ios');
const faults = [];
const fault = (path, text) => faults.push(`${path.startsWith('/') ? relative(root, path) : path}: ${text}`);
const read = (path) => readFileSync(join(root, path), 'utf8');

function files(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath ?? entry.path, entry.name)));
}

/** Reads a property list, in XML or in the format of projects; undefined if it cannot be read. */
function propertyList(path) {
  const result = spawnSync('plutil', ['-convert', 'json', '-o', '-', join(root, path)], { encoding: 'utf8' });
  if (result.status === 0) return JSON.parse(result.stdout);
  fault(path, `plutil cannot read it: ${(result.stderr || result.stdout).trim()}`);
  return undefined;
}

function json(path) {
  try {
    return JSON.parse(read(path));
  } catch (error) {
    fault(path, `it is not JSON: ${error.message}`);
    return undefined;
  }
}

// Declarations of the stand-ins.

const declaration = /\b(class|struct|enum|actor|protocol|extension|func|var|let|case|typealias|associatedtype|init|subscript|macro|operator)\b/;
const sourced = / {2}\/\/ (D|H): ([\w/+.-]+(?:\([\w:]*\))?)$/;
// Documentation that covers more than one module.
const sharedDocumentation = ['avfaudio', 'corefoundation', 'foundation', 'swift'];

/** Checks that each declaration names its source: a page of the module's documentation about that name, or a header of WebRTC. */
function standIns() {
  for (const path of files('ios/StandIns')) {
    if (path === 'ios/StandIns/Uses.swift') continue;
    const module = /([^/]+)\.swiftinterface$/.exec(path)?.[1];
    if (!module) {
      fault(path, 'it is not a stand-in.');
      continue;
    }
    read(path).split('\n').forEach((line, index) => {
      if (/\/\*/.test(line)) fault(path, `line ${index + 1} hides declarations in a comment.`);
      if (/^\s*(\/\/|import\b|$)/.test(line) || !declaration.test(line)) return;
      const [, kind, source] = sourced.exec(line) ?? [];
      if (!source) return fault(path, `line ${index + 1} names no source.`);
      const isRight = kind === 'H' ? module === 'WebRTC' && /^sdk\/objc\/[\w/+]+\.h$/.test(source)
        : module !== 'WebRTC' && [module.toLowerCase(), ...sharedDocumentation].includes(source.split('/')[0])
          && (!declaredName(line) || source.includes(declaredName(line).toLowerCase()));
      if (!isRight) fault(path, `line ${index + 1} names a source of something else.`);
    });
  }
}

/** Returns the name that a line declares; undefined for initializers and subscripts. */
function declaredName(line) {
  const code = line.replace(sourced, '').replaceAll(/@\w+(\([^)]*\))?/g, '').replace(/\bclass (func|var)\b/, '$1');
  return /\b(?:class|struct|enum|protocol|extension|func|var|let|case|typealias)\s+`?(?:\w+\.)*(\w+)/.exec(code)?.[1];
}

// Names that only the compiler or another declaration uses.
const implicit = /^(build\w+|wrappedValue|projectedValue|rawValue|dynamicMember|callAsFunction|main|formUnion|formIntersection|symmetricDifference|formSymmetricDifference|union|intersection|insert|remove|update|contains|startIndex|endIndex|default|Body|T|Value|Context|Coordinator|UIViewType|coder|ignore|_ConditionalContent|TupleView)$/;

/** The folders with compiled code besides the app's own. */
const others = ['Sources/ConfabUI', 'Sources/OpenTokCompat', 'ios/Samples'];

/** Checks that each declared name is used in compiled code. For a type, a use in another declaration is enough. */
function unused() {
  const code = [...swiftFiles(join(ios, 'Confab')), ...others.flatMap((path) => swiftFiles(join(root, path))), join(ios, 'StandIns/Uses.swift')]
    .map((path) => readFileSync(path, 'utf8').replaceAll(/\/\/.*$/gm, '')).join('\n');
  const words = new Set(code.match(/\w+/g));
  const interfaces = files('ios/StandIns').filter((name) => name.endsWith('.swiftinterface'))
    .map((path) => read(path).replaceAll(/\/\/.*$/gm, '')).join('\n');
  for (const path of files('ios/StandIns').filter((name) => name.endsWith('.swiftinterface'))) {
    for (const line of read(path).split('\n')) {
      const source = line.replace(/ {2}\/\/ [DH]: .*$/, '').replaceAll(/@\w+(\([^)]*\))?/g, '');
      if (/^\s*(\/\/|import\b|extension\b)/.test(source)) continue;
      const name = /\b(?:class|struct|enum|protocol|func|var|let|case|typealias)\s+`?(\w+)/.exec(source.replace(/\bclass (func|var)\b/, '$1'))?.[1];
      const isType = /\b(class|struct|enum|protocol|typealias)\b/.test(source) && !/\bclass (func|var)\b/.test(source);
      const isUsed = words.has(name) || (isType && interfaces.split(new RegExp(`\\b${name}\\b`)).length > 2);
      if (name && !implicit.test(name) && !isUsed) fault(path, `nothing uses "${name}". Use it in Uses.swift, or remove it.`);
    }
  }
}

// The project.

function project() {
  const path = 'ios/Confab.xcodeproj/project.pbxproj';
  const lists = propertyList(path);
  if (!lists) return;
  const { objects, rootObject } = lists;
  const mentioned = new Set([rootObject]);
  const collect = (value) => {
    if (Array.isArray(value)) value.forEach(collect);
    else if (value && typeof value === 'object') Object.entries(value).forEach(([key, item]) => { collect(key); collect(item); });
    else if (/^[0-9A-F]{24}$/.test(value)) mentioned.add(value);
  };
  Object.values(objects).forEach(collect);
  for (const id of mentioned) if (!objects[id]) fault(path, `${id} is mentioned but not defined.`);
  for (const id of Object.keys(objects)) if (!mentioned.has(id)) fault(path, `${id} is defined but not mentioned.`);
  const target = Object.values(objects).find((object) => object.isa === 'PBXNativeTarget');
  for (const group of target.fileSystemSynchronizedGroups.map((id) => objects[id])) exists(path, `ios/${group.path}`);
  for (const group of Object.values(objects).filter((object) => object.isa === 'PBXGroup')) {
    for (const child of group.children.map((id) => objects[id])) {
      if (child?.isa === 'PBXFileReference' && child.sourceTree === '<group>') exists(path, `ios/${group.path}/${child.path}`);
    }
  }
  products(path, objects);
}

function exists(path, name) {
  if (!existsSync(join(root, name))) fault(path, `it names ${name}, which does not exist.`);
}

/**
 * Checks that the products that the project names are in Package.swift, and that the app links each product that it imports.
 */
function products(path, objects) {
  const manifest = read('Package.swift');
  const linked = Object.values(objects).filter((object) => object.isa === 'XCSwiftPackageProductDependency');
  for (const { productName, package: remote } of linked) {
    if (!remote && !manifest.includes(`.library(name: "${productName}"`)) fault('Package.swift', `it has no product ${productName}, which the app links.`);
  }
  for (const { name } of Object.values(objects).filter((object) => object.isa === 'PBXNativeTarget')) {
    if (linked.some(({ productName }) => productName === name)) fault(path, `the target ${name} has the name of a product.`);
  }
  const ours = new Set(linked.map((object) => object.productName));
  const apple = new Set(files('ios/StandIns').map((name) => /([^/]+)\.swiftinterface$/.exec(name)?.[1]).filter(Boolean));
  for (const file of swiftFiles(join(ios, 'Confab'))) {
    for (const [, module] of readFileSync(file, 'utf8').matchAll(/^(?:@\w+ )*import (\w+)/gm)) {
      if (['Dispatch', 'Foundation', 'Observation'].includes(module)) continue;
      if (module === 'WebRTC' ? !ours.has(module) : !ours.has(module) && !apple.has(module)) fault(file, `it imports ${module}, which the project does not link.`);
    }
  }
}

/** Allows only files that Xcode compiles or copies, and no Swift files outside of the app's folder. */
function kinds() {
  const known = new Set(['.swift', '.xcprivacy', '.xcstrings', '.json', '.png']);
  for (const path of files('ios/Confab')) {
    if (!known.has(extname(path))) fault(path, 'Xcode would not know what to do with this file.');
    if (/\.(json|png)$/.test(path) && !path.includes('.xcassets/')) fault(path, 'it belongs in an asset catalog.');
  }
  for (const path of files('ios')) {
    if (path.endsWith('.swift') && !/^ios\/(Confab|Mistakes|Samples|StandIns)\//.test(path)) fault(path, 'no target of the project contains it.');
  }
}

const requiredKeys = {
  CFBundleIdentifier: 'string', CFBundleURLTypes: 'object', NSAppTransportSecurity: 'object', NSCameraUsageDescription: 'string',
  NSLocalNetworkUsageDescription: 'string', NSLocationWhenInUseUsageDescription: 'string', NSMicrophoneUsageDescription: 'string', NSUserActivityTypes: 'object',
  UIApplicationSceneManifest: 'object', UIBackgroundModes: 'object', UILaunchScreen: 'object',
  UISupportedInterfaceOrientations: 'object', 'UISupportedInterfaceOrientations~ipad': 'object',
};

function propertyLists() {
  const path = 'ios/Support/Info.plist';
  const info = propertyList(path) ?? {};
  for (const [key, type] of Object.entries(requiredKeys)) if (typeof info[key] !== type) fault(path, `the key ${key} is missing.`);
  for (const mode of ['audio', 'voip']) if (!info.UIBackgroundModes?.includes(mode)) fault(path, `UIBackgroundModes has no ${mode}.`);
  if (info.NSAppTransportSecurity?.NSAllowsArbitraryLoads) fault(path, 'NSAllowsArbitraryLoads allows connections without TLS to any server.');
  const privacy = propertyList('ios/Confab/PrivacyInfo.xcprivacy') ?? {};
  if (privacy.NSPrivacyTracking !== false) fault('ios/Confab/PrivacyInfo.xcprivacy', 'NSPrivacyTracking must be false.');
  const push = propertyList('ios/Support/Push.entitlements') ?? {};
  if (!push['aps-environment']) fault('ios/Support/Push.entitlements', 'aps-environment is missing.');
}

const requiredSettings = {
  IPHONEOS_DEPLOYMENT_TARGET: '17.0', SWIFT_VERSION: '6.0', SWIFT_DEFAULT_ACTOR_ISOLATION: 'nonisolated',
  SWIFT_UPCOMING_FEATURE_MEMBER_IMPORT_VISIBILITY: 'YES', SWIFT_UPCOMING_FEATURE_EXISTENTIAL_ANY: 'YES',
  GENERATE_INFOPLIST_FILE: 'NO', PRODUCT_MODULE_NAME: 'ConfabApp', INFOPLIST_FILE: 'Support/Info.plist',
};

function settings() {
  const shared = Object.fromEntries([...read('ios/Config/Shared.xcconfig').matchAll(/^(\w+) = (.*)$/gm)].map((match) => match.slice(1)));
  for (const [key, value] of Object.entries(requiredSettings)) if (shared[key] !== value) fault('ios/Config/Shared.xcconfig', `${key} must be ${value}.`);
  if (/^[^/]*ROULETTE/m.test(read('ios/Config/Store.xcconfig'))) fault('ios/Config/Store.xcconfig', 'the App Store does not admit the roulette.');
  for (const path of files('ios/Config')) {
    for (const [, optional, name] of read(path).matchAll(/^#include(\??) "(.*)"$/gm)) if (!optional) exists(path, `ios/Config/${name}`);
  }
}

function assets() {
  for (const path of files('ios/Confab').filter((name) => name.endsWith('Contents.json'))) {
    const contents = json(path);
    for (const { filename } of contents?.images ?? []) if (filename) exists(path, join(dirname(path), filename));
  }
}

// The texts.

function texts() {
  const calls = localizedCalls(read('ios/StandIns/SwiftUI.swiftinterface'));
  const path = 'ios/Confab/Localizable.xcstrings';
  const strings = json(path)?.strings ?? {};
  const shown = new Set();
  for (const file of swiftFiles(join(ios, 'Confab'))) {
    for (const { line, text } of textsIn(readFileSync(file, 'utf8'), calls)) {
      shown.add(text);
      if (text === undefined) fault(file, `line ${line}: a localized text with an interpolation. Let AppModel make the text.`);
      else if (!(text in strings)) fault(file, `line ${line}: "${text}" is not in the string catalog. Run scripts/ios-project.`);
    }
  }
  for (const text of Object.keys(strings)) if (!shown.has(text)) fault(path, `nothing shows "${text}". Run scripts/ios-project.`);
}

// Rules for code that Linux cannot check fully. ios/README.md has the reasons.
const refused = [
  [/@objc\b|#selector\b/, 'Objective-C interoperability'],
  [/#if\s+!?(os|targetEnvironment)\(/, 'a condition that Linux does not compile'],
  [/#available\b|@available\b/, 'a condition that Linux does not check'],
  [/^import Combine\b|\bObservableObject\b|@Published\b/, 'Combine'],
  [/#Preview\b/, 'a preview, which Linux does not compile'],
  [/\bState\((wrappedValue|initialValue):|^\s*_\w+ = State\b/, '@State is a macro with Xcode 27 and gets its value where it is declared'],
  [/@State\s+(?:private\s+)?var\s+\w+\s*:[^=]*$/, '@State without a value'],
  [/\bsetActive\((?!(let )?on\b)/, 'activating the audio session: the coordinator decides, and CallKit does it during calls'],
  [/\b(Task\.sleep|Timer)\b/, 'a decision that belongs in AppModel'],
  [/((?<!func )\b(reportNewIncomingCall|requestAuthorization|requestAccess|startCapture|stopCapture|CXTransaction|pathUpdateHandler)\b[^{]*|\bcompletionHandler: )\{(?!\s*@Sendable)/,
    'a closure without @Sendable, which the system calls on another thread: it would belong to the main actor and trap there'],
  [/^[^/]*\b(class|actor|struct)\s+\w+[^{]*:\s*[^{]*\b(CXProviderDelegate|PKPushRegistryDelegate|CLLocationManagerDelegate|RTC\w+Delegate|AVPictureInPictureControllerDelegate)\b/,
    'a delegate conformance outside of an extension: the compiler does not warn about misspelled methods'],
];

function rules() {
  for (const file of [...swiftFiles(join(ios, 'Confab')), ...others.flatMap((path) => swiftFiles(join(root, path)))]) {
    readFileSync(file, 'utf8').split('\n').forEach((line, index) => {
      if (/^\s*\/\//.test(line)) return;
      for (const [pattern, what] of refused) if (pattern.test(line)) fault(file, `line ${index + 1}: ${what}.`);
    });
  }
}

function generated() {
  const result = spawnSync(join(root, 'scripts/ios-project'), ['--check'], { encoding: 'utf8' });
  if (result.status !== 0) fault('ios', (result.stdout + result.stderr).trim());
}

/** Returns the code of the App Store build: without the lines between `#if ROULETTE` and `#else` or `#endif`. */
function withoutRoulette(code) {
  const kept = [];
  const conditions = [];
  for (const line of code.split('\n')) {
    const [, word, name] = /^\s*#(if|else|endif)\b\s*(\w*)/.exec(line) ?? [];
    if (word === 'if') conditions.push({ name, isElse: false });
    else if (word === 'else') conditions.at(-1).isElse = true;
    else if (word === 'endif') conditions.pop();
    // Empty lines preserve the numbers of the other lines.
    const isLeftOut = word !== undefined || conditions.some(({ name, isElse }) => name === 'ROULETTE' && !isElse);
    kept.push(isLeftOut ? '' : line);
  }
  return kept;
}

/** Checks that the App Store build does not contain the roulette. A reviewer would find code that is only hidden. */
function store() {
  for (const file of swiftFiles(join(ios, 'Confab'))) {
    withoutRoulette(readFileSync(file, 'utf8')).forEach((line, index) => {
      if (/\bRoulette\w+|\.roulette\.|"[^"]*\bstrangers?\b/i.test(line.replace(/\/\/.*$/, ''))) fault(file, `line ${index + 1}: a part of the roulette outside of #if ROULETTE.`);
    });
  }
}

// The reading order of a screen: the tests derive it from the model, and the views must have the same order.

/** Returns the code between the braces that open at or after an index. */
function block(code, from) {
  const start = code.indexOf('{', from);
  let depth = 0;
  for (let index = start; index < code.length; index++) {
    if (code[index] === '{') depth++;
    else if (code[index] === '}' && --depth === 0) return code.slice(start + 1, index);
  }
  return '';
}

/** Returns the views of the app, and for each its properties that are views. */
function views() {
  const all = new Map();
  for (const file of swiftFiles(join(ios, 'Confab/Screens'))) {
    const code = readFileSync(file, 'utf8').replaceAll(/^\s*\/\/.*$/gm, '');
    for (const match of code.matchAll(/^(?:private )?struct (\w+)[^{\n]*: View /gm)) {
      const inside = block(code, match.index);
      const parts = new Map();
      for (const part of inside.matchAll(/\bvar (\w+): some View /g)) parts.set(part[1], block(inside, part.index));
      all.set(match[1], parts);
    }
  }
  return all;
}

const labeled = 'Button|TextField|SecureField|Picker|Toggle|Label|Text|Menu|accessibilityLabel';

/** Returns the labels that the code of a view spells out, in their order. Includes the views that it uses. */
function labelsOf(all, name, without, part = 'body') {
  const parts = all.get(name);
  const code = parts?.get(part);
  if (code === undefined) return [];
  const labels = [];
  for (const [, label, word] of code.matchAll(new RegExp(`\\b(?:${labeled})\\("([^"]*)"|(?<![.\\w])(\\w+)\\b`, 'g'))) {
    if (label !== undefined) labels.push(label);
    else if (word !== name && all.has(word) && !without.includes(word)) labels.push(...labelsOf(all, word, without));
    else if (word !== part && parts.has(word)) labels.push(...labelsOf(all, name, without, word));
  }
  return labels;
}

/**
 * For each screen, the views that draw its sections: a section is drawn by the first view whose button or field is in
 * it.
 */
const drawn = {
  Room: [{ has: '(Leave)', view: 'RoomStage' }, { has: '', view: 'RoomView', without: ['RoomStage'] }],
  InCall: [{ has: /^ {2}\(End(, off)?\)$/m, view: 'CallView' }, { has: '', view: 'EndedCallView' }],
  OutgoingCall: [{ has: /^ {2}\(Cancel(, off)?\)$/m, view: 'CallView' }, { has: '', view: 'EndedCallView' }],
};

function order() {
  const all = views();
  for (const [screen, candidates] of Object.entries(drawn)) {
    const path = `Tests/AppModelTests/Screens/${screen}.txt`;
    for (const section of read(path).split('\n\n')) {
      const { view, without = [] } = candidates.find(({ has }) => typeof has === 'string' ? section.includes(has) : has.test(section));
      if (!all.has(view)) return fault('ios/Confab/Screens', `there is no view ${view}, which draws ${screen}.`);
      const labels = labelsOf(all, view, without);
      let next = 0;
      for (const line of section.split('\n').slice(1)) {
        const label = /^ {2}(?:\((.*?)(?:, off)?\)|\[[ x]\] (.*)|([A-Z][\w ]*): .*)$/.exec(line)?.slice(1).find(Boolean);
        if (!label || !labels.includes(label)) continue;
        const index = labels.indexOf(label, next);
        if (index >= 0) next = index + 1;
        else {
          fault(path, `${section.split('\n')[0]} has "${label}" at another place than ${view}, which has: ${labels.join(', ')}.`);
          break;
        }
      }
    }
  }
}

function checkAll() {
  for (const check of [standIns, unused, project, kinds, propertyLists, settings, assets, texts, rules, store, order, generated]) check();
  return faults;
}

/** Makes each mistake in a copy of the checked files. Returns a text for each mistake that the checks do not find. */
function mistakes() {
  const copy = mkdtempSync(join(tmpdir(), 'confab-ios-'));
  const unseen = [];
  try {
    for (const { file, replace, by, expect } of JSON.parse(read('ios/Mistakes/edits.json'))) {
      for (const part of ['ios', 'Sources/ConfabUI', 'Sources/OpenTokCompat', 'Tests/AppModelTests/Screens', 'Package.swift', 'scripts/ios-project', 'scripts/ios-texts.mjs']) {
        rmSync(join(copy, part), { recursive: true, force: true });
        cpSync(join(own, part), join(copy, part), { recursive: true });
      }
      const path = join(copy, file);
      const before = existsSync(path) && statSync(path).isFile() ? readFileSync(path, 'utf8') : '';
      if (replace !== undefined && !before.includes(replace)) unseen.push(`ios/Mistakes/edits.json: ${file} has no "${replace}".`);
      writeFileSync(path, replace === undefined ? by : before.replace(replace, by));
      const output = spawnSync('node', [fileURLToPath(import.meta.url), 'copy', copy], { encoding: 'utf8' }).stdout;
      if (!output.includes(expect)) unseen.push(`The mistake in ${file} is not found with "${expect}". Found instead:\n${output}`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  return unseen;
}

execFileSync('plutil', ['-help'], { stdio: 'ignore' });
const result = process.argv[2] === 'mistakes' ? mistakes() : checkAll();
for (const line of result) console.log(line);
process.exitCode = result.length === 0 ? 0 : 1;
