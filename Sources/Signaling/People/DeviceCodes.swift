import DequeModule
import Wire

/// The one-time pairing codes with which a device is linked to a person.
///
/// Owns the codes and the limit on guesses per address. Whether the link is allowed is checked by the state machines
/// of two people: the one who owns the code, and the one to whom the device has belonged so far.
/// Invariant: a code belongs to one person and a person has at most one code. A code becomes invalid when it is used,
/// replaced or withdrawn, or when it expires.
struct DeviceCodes: Machine {
    /// The person to whom a code belongs, and when the code expires.
    private struct Code: Sendable {
        var owner: IdentityID
        var expires: Timestamp
    }

    /// Maximum number of valid codes at one time, each about 100 bytes. Far more than people need during the five minutes in
    /// which a code is valid.
    private static let maxCodes = 100_000
    /// Maximum number of addresses with a separate budget. Guesses from further addresses share one budget.
    private static let maxAddresses = 10_000

    private var codes: [PairingCode: Code] = [:]
    private var byOwner: [IdentityID: PairingCode] = [:]
    /// The codes in order of expiry, including some that were already used or replaced.
    private var expiring: Deque<(code: PairingCode, expires: Timestamp)> = []
    private var guesses = BudgetTable<String>(maxKeys: Self.maxAddresses)

    init() {}

    var nextTimeout: Timestamp? { expiring.first?.expires }

    mutating func handle(_ event: DeviceCodesEvent, _ context: inout Context) {
        switch event {
        case .make(let owner, let client, let re):
            make(for: owner, Request(client, re), &context)
        case .use(let verb, let device, let client, let address, let re):
            let request = Request(client, re)
            if let wait = guesses.take(address, context.rules.linkGuesses, now: context.now) {
                let error = WireError(
                    .rateLimited, "Too many pairing codes tried. Try again in \(wait.roundedText).",
                    retryable: true, retryAfter: wait)
                return context.fail(error, request)
            }
            use(verb, by: device, request, &context)
        case .withdraw(let owner): withdraw(owner)
        }
    }

    mutating func handleTimeout(_ context: inout Context) {
        while let first = expiring.first, first.expires <= context.now {
            expiring.removeFirst()
            if let code = codes[first.code], code.expires <= context.now { withdraw(code.owner) }
        }
    }

    // MARK: Codes

    private mutating func make(for owner: IdentityID, _ request: Request, _ context: inout Context) {
        withdraw(owner)
        guard codes.count < Self.maxCodes else {
            let error = WireError(
                .rateLimited, "Too many devices are being linked right now. Try again in a minute.", retryable: true)
            return context.fail(error, request)
        }
        var text = PairingCode.random(using: &context.random)
        while codes[text] != nil { text = PairingCode.random(using: &context.random) }
        let expires = context.now + context.rules.linkCodeLifetime
        codes[text] = Code(owner: owner, expires: expires)
        byOwner[owner] = text
        expiring.append((text, expires))
        // Compact the list by dropping codes that were used or replaced before they expired. The amortized cost is at most two
        // visits per entry.
        if expiring.count > 2 * codes.count + 64 {
            expiring.removeAll { entry in codes[entry.code]?.expires != entry.expires }
        }
        let code = PresenceNotice.LinkCode(re: request.re, code: text.shown, expiresIn: context.rules.linkCodeLifetime)
        context.send(.presence(.linkCode(code)), to: request.client)
    }

    private mutating func withdraw(_ owner: IdentityID) {
        if let text = byOwner.removeValue(forKey: owner) { codes[text] = nil }
    }

    private mutating func use(
        _ verb: PresenceVerb.UseLink, by device: IdentityID, _ request: Request, _ context: inout Context
    ) {
        guard let text = PairingCode(verb.code), let code = codes[text], context.now < code.expires else {
            let error = WireError(
                .linkInvalid, "This pairing code is wrong, used or expired. Get a new one on the other device.")
            return context.fail(error, request)
        }
        guard code.owner != device else {
            let error = WireError(
                .linkInvalid, "This is your own pairing code. Enter it on the device that you want to add.")
            return context.fail(error, request)
        }
        withdraw(code.owner)
        let linked = LinkedDevice(identity: device, label: verb.label ?? "", linkedAt: context.wallNow)
        context.tell(.person(code.owner, .presence(.linked(linked, request.client, re: request.re))))
    }
}

/// Eight digits in Crockford's base 32, which has no letters that look like digits. If a user types such a letter, it
/// is accepted as the digit. There are 2^40 codes. At ten guesses per minute, finding one of a thousand valid codes
/// takes two hundred years on average.
struct PairingCode: Hashable, Sendable {
    private static let digits = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private static let count = 8

    private var value: UInt64

    static func random(using generator: inout some RandomNumberGenerator) -> PairingCode {
        PairingCode(value: generator.next() >> UInt64(64 - 5 * count))
    }

    private init(value: UInt64) { self.value = value }

    /// Parses a code as a user typed it: in uppercase or lowercase, with or without dashes and spaces. Returns nil if
    /// the text is not a code.
    init?(_ text: String) {
        var (value, count): (UInt64, Int) = (0, 0)
        for byte in text.utf8 where byte != UInt8(ascii: "-") && byte != UInt8(ascii: " ") {
            let capital = UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte ? byte - 32 : byte
            let digit: Int?
            switch capital {
            case UInt8(ascii: "O"): digit = 0
            case UInt8(ascii: "I"), UInt8(ascii: "L"): digit = 1
            default: digit = Self.digits.firstIndex(of: capital)
            }
            guard let digit, count < Self.count else { return nil }
            (value, count) = (value << 5 | UInt64(digit), count + 1)
        }
        guard count == Self.count else { return nil }
        self.value = value
    }

    var shown: String {
        let text = (0..<Self.count).map { place in
            Self.digits[Int(value >> UInt64(5 * (Self.count - 1 - place)) & 31)]
        }
        return String(decoding: text.prefix(4), as: UTF8.self) + "-" + String(decoding: text.suffix(4), as: UTF8.self)
    }
}
