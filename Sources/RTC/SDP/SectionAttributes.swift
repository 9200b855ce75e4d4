extension MediaSection {
    /// Parses the text after `m=` (RFC 8866 §5.14).
    init(_ line: inout SDPLine) throws(SDPError) {
        let kind = MediaKind(try line.token("The media of m=", upTo: 32))
        var portAndCount = line.word()
        guard let port = portAndCount.take(until: UInt8(ascii: "/")).decimal(UInt16.self) else {
            throw line.malformed("The port of m= must be a number from 0 to 65535.")
        }
        self.init(kind: kind, port: port, protocolName: try line.token("The protocol of m=", upTo: 64))
        let isRTP = isRTP
        var seen = [Bool](repeating: false, count: 128)
        while !line.isAtEnd {
            let format = line.word()
            if format.isEmpty { continue }
            if isRTP {
                guard let payloadType = format.decimal(UInt8.self), payloadType <= 127 else {
                    throw line.malformed("A payload type must be a number from 0 to 127.")
                }
                guard !seen[Int(payloadType)] else {
                    throw SDPError(
                        .duplicate, line: line.number,
                        "m= has payload type \(payloadType) twice. Payload types must be unique.")
                }
                seen[Int(payloadType)] = true
                payloads.append(PayloadFormat(payloadType: payloadType))
            } else {
                guard formats.count < 128 else { throw line.tooMany(128, "formats") }
                formats.append(try line.token(format, "A format", upTo: 64))
            }
        }
        guard !payloads.isEmpty || !formats.isEmpty else { throw line.malformed("m= must have at least one format.") }
    }

    mutating func read(_ attribute: SDPAttribute, _ line: inout SDPLine) throws(SDPError) {
        switch attribute {
        case .mid:
            guard mid == nil else {
                throw SDPError(.duplicate, line: line.number, "A media section must have only one a=mid.")
            }
            mid = try line.token("A mid", upTo: SessionDescription.maxMIDCharacters)
        case .sendrecv, .sendonly, .recvonly, .inactive: direction = MediaDirection(rawValue: attribute.rawValue)
        case .rtcpMux: hasRTCPMux = true
        case .rtcpRsize: hasReducedSizeRTCP = true
        case .bundleOnly: isBundleOnly = true
        case .extmapAllowMixed: allowsMixedExtensions = true
        case .rtpmap: try rtpmap(&line)
        case .fmtp: try fmtp(&line)
        case .rtcpFb: try rtcpFeedback(&line)
        case .extmap: try extmap(&line)
        case .ssrc: try source(&line)
        case .ssrcGroup: try sourceGroup(&line)
        case .msid:
            guard streams.count < SessionDescription.maxStreams else {
                throw line.tooMany(SessionDescription.maxStreams, "a=msid lines in a section")
            }
            streams.append(try MediaStreamID(&line))
        case .rid: try rid(&line)
        case .simulcast: try simulcast(&line)
        default: try transport.read(attribute, &line)
        }
    }

    /// Changes the format whose payload type is the next word. Ignores the line if the `m=` line does not list this
    /// payload type. Searches at most 128 formats.
    private mutating func payload(
        _ line: inout SDPLine, _ change: (inout PayloadFormat, inout SDPLine) throws(SDPError) -> Void
    ) throws(SDPError) {
        let payloadType = try line.number(UInt8.self, "A payload type")
        guard let index = payloads.firstIndex(where: { $0.payloadType == payloadType }) else { return }
        try change(&payloads[index], &line)
    }

    /// Parses `a=rtpmap` (RFC 8866 §6.6). If a payload type has two, the first counts.
    private mutating func rtpmap(_ line: inout SDPLine) throws(SDPError) {
        try payload(&line) { (payload, line) throws(SDPError) in
            var value = line.word()
            let encoding = try line.token(value.take(until: UInt8(ascii: "/")), "The encoding of a=rtpmap", upTo: 64)
            guard let clockRate = value.take(until: UInt8(ascii: "/")).decimal(UInt32.self), clockRate > 0 else {
                throw line.malformed("The clock rate of a=rtpmap must be a number greater than 0.")
            }
            guard let channels = value.isEmpty ? 1 : value.decimal(UInt8.self) else {
                throw line.malformed("The channel count of a=rtpmap must be a number from 0 to 255.")
            }
            guard payload.encoding.isEmpty else { return }
            (payload.encoding, payload.clockRate, payload.channels) = (encoding, clockRate, channels)
        }
    }

    /// Parses `a=fmtp` (RFC 8866 §6.15). If a payload type has two, the first counts.
    private mutating func fmtp(_ line: inout SDPLine) throws(SDPError) {
        try payload(&line) { (payload, line) throws(SDPError) in
            if payload.parameters.isEmpty { payload.parameters = line.rest.text }
        }
    }

    /// Parses `a=rtcp-fb` (RFC 4585 §4.2). The payload type `*` means all payload types.
    private mutating func rtcpFeedback(_ line: inout SDPLine) throws(SDPError) {
        if line.rest.first == UInt8(ascii: "*") {
            _ = line.word()
            guard let feedback = RTCPFeedback(line.rest) else { return }
            for index in payloads.indices { payloads[index].feedback.insert(feedback) }
        } else {
            try payload(&line) { (payload, line) throws(SDPError) in
                if let feedback = RTCPFeedback(line.rest) { payload.feedback.insert(feedback) }
            }
        }
    }

    /// Parses `a=extmap` (RFC 8285 §8).
    private mutating func extmap(_ line: inout SDPLine) throws(SDPError) {
        var idAndDirection = line.word()
        let idText = idAndDirection.take(until: UInt8(ascii: "/"))
        guard let id = idText.decimal(UInt16.self), id > 0, id < 256 || (4096...4351).contains(id) else {
            throw line.malformed("The id of a=extmap must be a number from 1 to 255.")
        }
        // Ids from 4096 to 4351 are alternatives from which the answerer may choose (RFC 8285 §7). Ignore them, because no
        // required extension uses them.
        guard let id = UInt8(exactly: id) else { return }
        var mapping = ExtensionMapping(id: id, uri: line.word().text)
        if !idAndDirection.isEmpty {
            mapping.direction = MediaDirection(rawValue: idAndDirection.text)
            guard mapping.direction != nil else {
                throw line.malformed("The direction of a=extmap must be sendrecv, sendonly, recvonly or inactive.")
            }
        }
        guard !mapping.uri.isEmpty else { throw line.malformed("a=extmap must have a URI.") }
        mapping.attributes = line.rest.text
        if let other = extensions.first(where: { $0.id == id }) {
            guard other.uri == mapping.uri else {
                throw SDPError(
                    .duplicate, line: line.number, "Two a=extmap lines have the id \(id). Ids must be unique.")
            }
            return
        }
        guard extensions.count < SessionDescription.maxExtensions else {
            throw line.tooMany(SessionDescription.maxExtensions, "a=extmap lines in a section")
        }
        extensions.append(mapping)
    }

    /// Parses `a=ssrc` (RFC 5576 §4.1).
    private mutating func source(_ line: inout SDPLine) throws(SDPError) {
        let ssrc = try line.number(UInt32.self, "An SSRC")
        let index: Int
        if let known = sources.lastIndex(where: { $0.ssrc == ssrc }) {
            index = known
        } else {
            guard sources.count < SessionDescription.maxSources else {
                throw line.tooMany(SessionDescription.maxSources, "sources in a section")
            }
            index = sources.count
            sources.append(SourceDescription(ssrc: ssrc))
        }
        switch line.take(until: UInt8(ascii: ":")).text {
        case "cname": sources[index].cname = try line.visible("A CNAME", upTo: 255)
        case "msid": sources[index].msid = try MediaStreamID(&line)
        default: break
        }
    }

    /// Parses `a=ssrc-group` (RFC 5576 §4.2).
    private mutating func sourceGroup(_ line: inout SDPLine) throws(SDPError) {
        guard let semantics = SourceGroup.Semantics(rawValue: line.word().text) else { return }
        guard sourceGroups.count < SessionDescription.maxSourceGroups else {
            throw line.tooMany(SessionDescription.maxSourceGroups, "a=ssrc-group lines in a section")
        }
        var group = SourceGroup(semantics: semantics, ssrcs: [])
        while !line.isAtEnd {
            guard group.ssrcs.count < SessionDescription.maxSourceGroups else {
                throw line.tooMany(SessionDescription.maxSourceGroups, "sources in a group")
            }
            group.ssrcs.append(try line.number(UInt32.self, "An SSRC"))
        }
        sourceGroups.append(group)
    }

    /// Parses `a=rid` (RFC 8851 §4).
    private mutating func rid(_ line: inout SDPLine) throws(SDPError) {
        let id = try line.token("A rid", upTo: SessionDescription.maxRIDCharacters)
        let direction = line.word().text
        guard direction == "send" || direction == "recv" else {
            throw line.malformed("The direction of a=rid must be send or recv.")
        }
        guard rids.count < SessionDescription.maxRIDs else {
            throw line.tooMany(SessionDescription.maxRIDs, "a=rid lines in a section")
        }
        var rid = RestrictionIdentifier(id: id, isSend: direction == "send")
        guard !rids.contains(where: { $0.id == id && $0.isSend == rid.isSend }) else {
            throw SDPError(.duplicate, line: line.number, "Two a=rid lines have the rid \(id). Rids must be unique.")
        }
        var others: [String] = []
        while !line.isAtEnd {
            let restriction = line.take(until: UInt8(ascii: ";"))
            var list = restriction
            guard list.take(until: UInt8(ascii: "=")).text == "pt" else {
                others.append(restriction.text)
                continue
            }
            while !list.isEmpty, rid.payloadTypes.count < payloads.count {
                guard let payloadType = list.take(until: UInt8(ascii: ",")).decimal(UInt8.self) else {
                    throw line.malformed("pt= of a=rid must be payload types separated by commas.")
                }
                rid.payloadTypes.append(payloadType)
            }
        }
        rid.restrictions = others.joined(separator: ";")
        rids.append(rid)
    }

    /// Parses `a=simulcast` (RFC 8853 §5.1).
    private mutating func simulcast(_ line: inout SDPLine) throws(SDPError) {
        guard simulcast == nil else {
            throw SDPError(.duplicate, line: line.number, "A media section must have only one a=simulcast.")
        }
        var read = Simulcast()
        while !line.isAtEnd {
            let direction = line.word().text
            let streams = try Simulcast.streams(line.word(), line)
            switch direction {
            case "send" where read.send.isEmpty: read.send = streams
            case "recv" where read.receive.isEmpty: read.receive = streams
            default: throw line.malformed("a=simulcast must be send or recv followed by rids, each at most once.")
            }
        }
        simulcast = read
    }
}

extension Simulcast {
    /// Parses a list such as `1;~2,3`: semicolons separate streams, commas separate alternatives, and a tilde marks a paused
    /// stream.
    fileprivate static func streams(_ list: SDPBytes, _ line: SDPLine) throws(SDPError) -> [Stream] {
        var (rest, streams): (SDPBytes, [Stream]) = (list, [])
        while !rest.isEmpty {
            guard streams.count < SessionDescription.maxRIDs else {
                throw line.tooMany(SessionDescription.maxRIDs, "streams in a=simulcast")
            }
            var alternatives = rest.take(until: UInt8(ascii: ";"))
            var first = alternatives.take(until: UInt8(ascii: ","))
            let isPaused = first.first == UInt8(ascii: "~")
            if isPaused { first = first.dropFirst(1) }
            let rid = try line.token(first, "A rid", upTo: SessionDescription.maxRIDCharacters)
            guard !streams.contains(where: { $0.rid == rid }) else {
                throw SDPError(
                    .duplicate, line: line.number, "a=simulcast has the rid \(rid) twice. Rids must be unique.")
            }
            streams.append(Stream(rid: rid, isPaused: isPaused))
        }
        guard !streams.isEmpty else { throw line.malformed("a=simulcast must list at least one rid.") }
        return streams
    }
}

extension MediaStreamID {
    /// Parses the stream id of `a=msid`, and the track id if there is one (RFC 8830 §2).
    fileprivate init(_ line: inout SDPLine) throws(SDPError) {
        let stream = try line.visible("The stream of msid", upTo: 256)
        self.init(stream: stream, track: line.isAtEnd ? nil : try line.visible("The track of msid", upTo: 256))
    }
}

extension RTCPFeedback {
    /// Parses the text after the payload type in `a=rtcp-fb`. Returns nil for unsupported kinds.
    fileprivate init?(_ bytes: SDPBytes) {
        // Ignore longer names, because no known kind of feedback has one.
        guard bytes.count <= 16 else { return nil }
        let name = bytes.text
        guard let known = Self.names.first(where: { $0.1 == name }) else { return nil }
        self = known.0
    }
}
