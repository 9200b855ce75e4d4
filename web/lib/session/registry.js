// The page-wide state of the `OT` object: its publishers and subscribers, and the exception handlers.

import { ConfabError } from '../errors.js';
import { Emitter, OTEvent } from '../events.js';

/**
 * A set of objects with OpenTok's interface for `OT.publishers` and `OT.subscribers`.
 * @template T
 */
export class Registry {
  /** @type {Set<T>} */
  #members = new Set();

  /** @param {T} member */
  add(member) {
    this.#members.add(member);
  }

  /** @param {T} member */
  delete(member) {
    this.#members.delete(member);
  }

  /** @param {(member: T) => boolean} [predicate] default: matches every member @returns {T | undefined} the first match */
  find(predicate = () => true) {
    return [...this.#members].find(predicate);
  }

  /** @param {(member: T) => void} visit */
  forEach(visit) {
    [...this.#members].forEach(visit);
  }

  get length() {
    return this.#members.size;
  }
}

/** @type {Registry<import('./publisher.js').Publisher>} */
export const publishers = new Registry();
/** @type {Registry<import('./subscriber.js').Subscriber>} */
export const subscribers = new Registry();
/** Handlers of `OT.on('exception', …)`. */
export const exceptions = new Emitter();

/**
 * Adds the methods to an `OT` object with which programs listen to its exceptions. They return the object.
 * @template {object} T
 * @param {T} owner
 */
export function withExceptionHandlers(owner) {
  return Object.assign(owner, {
    /** @param {any} names @param {any} [handler] @param {unknown} [context] @returns {any} the object */
    on(names, handler, context) {
      exceptions.on(names, handler, context);
      return owner;
    },
    /** @param {any} names @param {any} [handler] @param {unknown} [context] @returns {any} the object */
    once(names, handler, context) {
      exceptions.once(names, handler, context);
      return owner;
    },
    /** @param {any} [names] @param {any} [handler] @param {unknown} [context] @returns {any} the object */
    off(names, handler, context) {
      exceptions.off(names, handler, context);
      return owner;
    },
  });
}

/**
 * Notifies the page's `exception` handlers, as OpenTok does for errors that also go to a callback.
 * @param {ConfabError} error
 * @param {unknown} target
 */
export function reportException(error, target) {
  const event = new OTEvent('exception', { code: error.code, title: error.name, message: error.message });
  event.target = target;
  exceptions.dispatch(event);
}

/**
 * Calls the callback when the promise has settled: without arguments if it was fulfilled, otherwise with the
 * translated error, which is also reported to the `exception` handlers.
 * @param {Promise<unknown>} promise
 * @param {((error?: ConfabError) => void) | undefined} callback
 * @param {unknown} target
 * @param {(error: unknown) => ConfabError} translate
 */
export function settle(promise, callback, target, translate) {
  return promise.then(
    () => callback?.(),
    (error) => {
      const known = translate(error);
      callback?.(known);
      reportException(known, target);
    },
  );
}
