// OpenTok's event system: `on`, `once` and `off` in all their forms, chainable. An event can have a default action,
// which runs after the handlers. If the event is cancelable, a handler can prevent that action.

/** @typedef {(event: any) => void} Handler */
/** @typedef {{handler: Handler, context: unknown, once: boolean}} Registration */

export class OTEvent {
  #prevented = false;

  /**
   * @param {string} type
   * @param {Record<string, unknown>} [members] further members of the event
   * @param {boolean} [cancelable]
   */
  constructor(type, members = {}, cancelable = false) {
    Object.assign(this, members);
    this.type = type;
    this.cancelable = cancelable;
    /** @type {unknown} */
    this.target = undefined;
  }

  preventDefault() {
    if (this.cancelable) this.#prevented = true;
  }

  isDefaultPrevented() {
    return this.#prevented;
  }
}

/**
 * Reports an exception that a handler threw. It is not thrown again, so that it cannot stop other handlers or break
 * the SDK.
 * @param {unknown} error
 */
function report(error) {
  if (typeof globalThis.reportError === 'function') globalThis.reportError(error);
  else console.error(error);
}

export class Emitter {
  /** @type {Map<string, Registration[]>} */
  #registrations = new Map();

  /**
   * Adds handlers: `on(name, handler, context?)` or `on({name: handler, …}, context?)`. A string may contain several
   * names, separated by spaces.
   * @param {string | Record<string, Handler>} names
   * @param {Handler | object} [handler]
   * @param {unknown} [context]
   * @returns {this}
   */
  on(names, handler, context) {
    return this.#register(names, handler, context, false);
  }

  /**
   * Like `on`, but for each name, the handler is called only for the first event.
   * @param {string | Record<string, Handler>} names
   * @param {Handler | object} [handler]
   * @param {unknown} [context]
   * @returns {this}
   */
  once(names, handler, context) {
    return this.#register(names, handler, context, true);
  }

  /**
   * Removes handlers: `off()` removes all, `off(name)` all of one event, `off(name, handler)` only this handler, and
   * `off(name, handler, context)` this handler only where it was added with this context. Like `on`, also accepts
   * several names, or an object of handlers.
   * @param {string | Record<string, Handler>} [names]
   * @param {Handler | object} [handler]
   * @param {unknown} [context]
   * @returns {this}
   */
  off(names, handler, context) {
    if (names === undefined) {
      const all = [...this.#registrations.keys()];
      this.#registrations.clear();
      for (const name of all) this._handlersChanged(name);
      return this;
    }
    for (const [name, known, itsContext] of pairs(names, handler, context)) {
      const kept = (this.#registrations.get(name) ?? []).filter((registration) => known !== undefined
        && (registration.handler !== known || (itsContext !== undefined && registration.context !== itsContext)));
      if (kept.length > 0) this.#registrations.set(name, kept);
      else this.#registrations.delete(name);
      this._handlersChanged(name);
    }
    return this;
  }

  /**
   * @deprecated OpenTok's old name for `on`.
   * @param {string} name
   * @param {Handler} handler
   * @param {unknown} [context]
   */
  addEventListener(name, handler, context) {
    this.on(name, handler, context);
  }

  /**
   * @deprecated OpenTok's old name for `off`.
   * @param {string} name
   * @param {Handler} handler
   * @param {unknown} [context]
   */
  removeEventListener(name, handler, context) {
    this.off(name, handler, context);
  }

  /** @param {string} name */
  hasHandlers(name) {
    return this.#registrations.has(name);
  }

  /**
   * Calls the event's handlers with `payload`. `Client`, `Roulette` and others emit their events with this method,
   * because these events have no default actions. For an `OTEvent`, use `dispatch`.
   * @param {string} name
   * @param {object} [payload]
   */
  emit(name, payload = {}) {
    for (const registration of [...this.#registrations.get(name) ?? []]) {
      if (registration.once) this.#forget(name, registration);
      try {
        registration.handler.call(registration.context ?? this, payload);
      } catch (error) {
        report(error);
      }
    }
  }

  /**
   * Calls the handlers of the event's type, or those of the name `as` if it is passed. Then runs the default action,
   * unless a handler prevented it.
   * @param {OTEvent} event
   * @param {() => void} [defaultAction]
   * @param {string} [as]
   */
  dispatch(event, defaultAction, as = event.type) {
    event.target ??= this;
    this.emit(as, event);
    if (!event.isDefaultPrevented()) defaultAction?.();
    return this;
  }

  /**
   * Called after handlers of an event were added or removed. Override this to measure something only while the event
   * has handlers.
   * @param {string} _name
   */
  _handlersChanged(_name) {}

  /** @param {string | Record<string, Handler>} names @param {any} handler @param {unknown} context @param {boolean} once */
  #register(names, handler, context, once) {
    for (const [name, given, itsContext] of pairs(names, handler, context)) {
      if (typeof given !== 'function') throw new TypeError(`Pass a function as the handler of on('${name}', …).`);
      const registrations = this.#registrations.get(name) ?? [];
      this.#registrations.set(name, [...registrations, { handler: given, context: itsContext, once }]);
      this._handlersChanged(name);
    }
    return this;
  }

  /** @param {string} name @param {Registration} gone */
  #forget(name, gone) {
    const kept = (this.#registrations.get(name) ?? []).filter((registration) => registration !== gone);
    if (kept.length > 0) this.#registrations.set(name, kept);
    else this.#registrations.delete(name);
    this._handlersChanged(name);
  }
}

/**
 * @param {string | Record<string, Handler>} names
 * @param {any} handler the handler; if `names` is an object of handlers, their context
 * @param {unknown} context
 * @returns {[string, any, unknown][]} one entry for each event name: the name, its handler and the handler's context
 */
function pairs(names, handler, context) {
  if (typeof names === 'string') return names.split(/\s+/).filter(Boolean).map((name) => [name, handler, context]);
  return Object.entries(names).map(([name, given]) => [name, given, handler]);
}
