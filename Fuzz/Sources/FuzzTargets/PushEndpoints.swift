import Wire

@testable import Server

extension FuzzTarget {
    /// Fuzzes a push endpoint, which consists of a kind and a URL. An accepted endpoint must have a host name, must be read
    /// from storage unchanged, and is admitted only if the configuration lists its host.
    static let pushEndpoints = FuzzTarget("push-endpoints", longestInput: 300, dictionary: "push") {
        input throws(BrokenProperty) in
        guard let first = input.first else { return }
        var registration = PushRegistration(
            kind: first & 1 == 0 ? .web : .apns, endpoint: String(decoding: input.dropFirst(), as: UTF8.self))
        // This is a valid point of the curve P-256, its base point.
        registration.p256dh =
            "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"
        registration.auth = "AAECAwQFBgcICQoLDA0ODw"
        guard let endpoint = try? PushEndpoint(registration) else { return }
        try require(
            (try? PushEndpoint(endpoint.registration)) == endpoint, "\(endpoint.registration) is read back differently")
        let services = PushServices(names: ["push.example.org", "*.example.net"], admitsApps: false)
        let isAdmitted = (try? services.validate(registration)) != nil
        guard case .web(let url, _, _) = endpoint.kind else {
            return try require(!isAdmitted, "an endpoint is admitted without a key")
        }
        try require(url.host == url.host.lowercased() && !url.host.isEmpty, "the host is \(url.host)")
        try require(!url.host.contains { ":@/?#[]%\\ ".contains($0) }, "the host is \(url.host)")
        let isNamed = url.service == "push.example.org" || url.service.hasSuffix(".example.net")
        try require(isAdmitted == isNamed, "\(url.service) is admitted: \(isAdmitted)")
        try require(url.path.hasPrefix("/"), "the path is \(url.path)")
    }

    /// Fuzzes the responses of push services.
    static let pushAnswers = FuzzTarget("push-answers", longestInput: 512, dictionary: "json") {
        input throws(BrokenProperty) in
        guard input.count >= 2 else { return }
        let status = 100 + (Int(input[0]) << 8 | Int(input[1])) % 500
        let answer = PushResponse(status: status, retryAfter: nil, body: Array(input.dropFirst(2)))
        let (web, apns) = (PushVerdict(web: answer), PushVerdict(apns: answer))
        try require(
            web != .renewToken, "a web push response is interpreted as renewToken, which only APNs needs")
        try require((web == .delivered) == (200...299 ~= status), "\(status) is interpreted as \(web)")
        if case .refused(let text) = apns {
            try require(text.utf8.allSatisfy { 0x20...0x7e ~= $0 }, "unprintable text reaches the log: \(text)")
        }
    }
}
