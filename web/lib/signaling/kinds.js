// Small building blocks that describe JSON values. A kind takes a value and returns a copy with only the known members, or
// throws an error with the path of the invalid value.

/** @typedef {(value: any, path: string, strict: boolean) => any} Kind */
/** @typedef {Record<string, Kind>} Members */

/** @param {string} path @param {string} wanted @returns {never} */
function refuse(path, wanted) {
  throw new TypeError(`${path} must be ${wanted}.`);
}

const absent = Symbol('absent');
/**
 * Kinds whose value may be absent.
 * @type {WeakSet<Kind>}
 */
const optionals = new WeakSet();
/** @type {WeakSet<Kind>} */
const nullables = new WeakSet();

/** @type {Kind} */
export const string = (value, path) => (typeof value === 'string' ? value : refuse(path, 'a string'));

/** @type {Kind} */
export const boolean = (value, path) => (typeof value === 'boolean' ? value : refuse(path, 'true or false'));

/** @type {Kind} */
export const integer = (value, path) => (Number.isSafeInteger(value) ? value : refuse(path, 'an integer below 2^53'));

/** @type {Kind} */
export const number = (value, path) => (Number.isFinite(value) ? value : refuse(path, 'a number'));

/** @param {string[]} choices @returns {Kind} */
export const oneOf = (...choices) => (value, path) => (choices.includes(value) ? value : refuse(path, `one of ${choices.join(', ')}`));

/**
 * Accepts `null` in addition to the kind's values.
 * @param {Kind} kind
 * @returns {Kind}
 */
export function nullable(kind) {
  /** @type {Kind} */
  const made = (value, path, strict) => (value === null ? null : kind(value, path, strict));
  nullables.add(made);
  return made;
}

/** @param {Kind} kind @returns {Kind} */
export const list = (kind) => (value, path, strict) => (Array.isArray(value)
  ? value.map((element, index) => kind(element, `${path}[${index}]`, strict))
  : refuse(path, 'a list'));

/**
 * Accepts an absent value. When decoding is not strict, `null` also counts as absent unless the kind is nullable, because other
 * languages often encode absent values as `null`.
 * @param {Kind} kind
 * @returns {Kind}
 */
export function optional(kind) {
  /** @type {Kind} */
  const made = (value, path, strict) => (value === undefined || (value === null && !strict && !nullables.has(kind))
    ? absent
    : kind(value, path, strict));
  optionals.add(made);
  return made;
}

/**
 * @param {Members} members
 * @returns {Kind} a kind that drops unknown members, or rejects them if decoding is strict
 */
export function object(members) {
  return (value, path, strict) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(path, 'an object');
    if (strict) {
      const unknown = Object.keys(value).find((name) => !Object.hasOwn(members, name));
      if (unknown !== undefined) refuse(`${path}.${unknown}`, 'left out: this member is unknown');
    }
    /** @type {Record<string, unknown>} */
    const made = {};
    for (const [name, kind] of Object.entries(members)) {
      if (value[name] === undefined && !optionals.has(kind)) refuse(`${path}.${name}`, 'present');
      const member = kind(value[name], `${path}.${name}`, strict);
      if (member !== absent) made[name] = member;
    }
    return made;
  };
}

/**
 * An object with arbitrary names and values of one kind.
 * @param {Kind} kind
 * @param {number} most the maximum number of members
 * @returns {Kind}
 */
export const dictionary = (kind, most) => (value, path, strict) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(path, 'an object');
  const entries = Object.entries(value);
  if (entries.length > most) refuse(path, `an object of at most ${most} members`);
  return Object.fromEntries(entries.map(([name, element]) => [name, kind(element, `${path}.${name}`, strict)]));
};
