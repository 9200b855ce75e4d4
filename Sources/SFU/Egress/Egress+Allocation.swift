import RTC

/// Divides a subscriber's bitrate among its videos, as chosen by `Allocation`.
extension Egress {
    /// Divides the budget among the subscriber's videos, or removes all limits if the budget is nil.
    /// - Parameter budget: the bitrate for everything the subscriber receives; nil for no limit.
    func allocate(_ budget: Bitrate?, to subscriber: Subscriber, now: MediaTime) {
        guard let budget else { return release(subscriber, now: now) }
        collectRequests(of: subscriber, now: now)
        let audio = subscriber.downlink?.audio ?? .zero
        let video = max(.zero, budget - audio)
        subscriber.downlink?.wanted = requests.reduce(audio) { total, request in
            request.steps.last.map { total + steps[$0].bitrate } ?? total
        }
        let hasVideo = requests.contains { $0.current != nil }
        let growth = subscriber.downlink?.growth(of: video, hasVideo: hasVideo, now: now) ?? VideoGrowth()
        let floor: Bitrate =
            subscriber.isBehind ? .zero : max(.zero, (subscriber.downlink?.control.floor ?? .zero) - audio)
        // Find the videos that would be paused if the budget were 30 % smaller.
        var atRisk = requests
        Allocation.distribute(video * 0.7, among: &atRisk, steps, growth: growth)
        Allocation.distribute(video, among: &requests, steps, floor: floor, growth: growth)
        subscriber.downlink?.chosen = requests.reduce(audio) { total, request in
            request.choice.map { total + steps[$0].bitrate } ?? total
        }
        for request in atRisk { subscriber.tracks[request.slot].isAtRisk = request.choice == nil }
        subscriber.isLimited = true
        apply(requests, to: subscriber, video, now: now)
    }

    /// Removes all limits.
    private func release(_ subscriber: Subscriber, now: MediaTime) {
        subscriber.isLimited = false
        for track in subscriber.tracks where track.kind == .video {
            track.allow(.max, FeedPacket.noLayer)
            (track.isAtRisk, track.isLimited) = (false, false)
        }
    }

    private func apply(_ requests: [VideoRequest], to subscriber: Subscriber, _ budget: Bitrate, now: MediaTime) {
        // While a subscriber waits for the keyframe of a smaller layer, the larger one continues, unless its bitrate is
        // far too high: then the queue would delay the audio, too.
        let video = subscriber.downlink.map { $0.media - $0.audio } ?? .zero
        let isFlooded = video > budget * 1.25
        var (lowers, raises, resumes) = (false, false, false)
        for request in requests {
            let track = subscriber.tracks[request.slot]
            let isLower = request.current.map { sent in request.choice.map { $0 < sent } ?? true } ?? false
            let isHigher = request.choice.map { choice in request.current.map { $0 < choice } ?? true } ?? false
            (lowers, raises) = (lowers || isLower, raises || isHigher)
            resumes = resumes || request.current == nil && request.choice != nil
            track.isLimited = request.choice.map { $0 < request.steps.upperBound - 1 } ?? true
            guard let choice = request.choice, let source = track.source else {
                track.allow(0, 0)
                continue
            }
            let step = steps[choice]
            track.allow(source.layers(upTo: step.layer), step.temporalLayer)
            if isLower, isFlooded, let feed = track.feed, feed.index != step.layer {
                track.pauseForwarding()
                track.target = nil
                source.needsSelection = true
            }
        }
        if lowers, let downlink = subscriber.downlink {
            // Record the estimate rather than the budget, which is far smaller while a queue drains.
            let carried = downlink.control.estimate.map { max(.zero, $0 - downlink.audio) } ?? budget
            downlink.lowered(to: carried, now: now)
        }
        if raises { subscriber.downlink?.raisedAt = now }
        if resumes { subscriber.downlink?.resumed(now: now) }
    }

    // MARK: Requests

    /// Collects the subscriber's video requests in `requests`, and their options in `steps`.
    private func collectRequests(of subscriber: Subscriber, now: MediaTime) {
        requests.removeAll(keepingCapacity: true)
        steps.removeAll(keepingCapacity: true)
        for (slot, track) in subscriber.tracks.enumerated() where track.kind == .video {
            guard let source = track.source, let publication = track.subscription?.publication else { continue }
            let first = steps.count
            addSteps(of: track, source, now: now)
            guard steps.count > first else { continue }
            var request = VideoRequest(slot: slot, steps: first..<steps.count)
            request.current = current(of: track, in: request.steps)
            request.rank = VideoRequest.Rank(
                priority: track.preference.priority,
                isSpeaking: publication.isSpeaking, area: track.preference.area)
            requests.append(request)
        }
    }

    /// Returns the index of the largest option that the previous allocation allows, or of the smallest option if it
    /// allows none of them; nil if the video is paused. The subscriber may still be waiting for the option's layer,
    /// but its bitrate is already reserved.
    private func current(of track: OutgoingTrack, in range: Range<Int>) -> Int? {
        guard !track.isPaused else { return nil }
        return range.last {
            track.allowedLayers >> UInt8(steps[$0].layer) & 1 == 1
                && steps[$0].temporalLayer <= track.allowedTemporalLayer
        } ?? range.first
    }

    /// Adds the options for a video: its layers, from the smallest to the one that the subscriber would get without a
    /// bandwidth limit. The temporal layers of the smallest layer are options, too.
    private func addSteps(of track: OutgoingTrack, _ source: FeedTrack, now: MediaTime) {
        let available = source.availableLayers(now: now)
        guard
            let ideal = Layer.best(
                of: source.layers, for: track.preference, current: nil, aliveOnly: false, allowed: available)
        else { return }
        let first = steps.count
        let largest = source.area(ideal)
        var below = -1
        while let layer = source.smallestLayer(above: below, upTo: largest, among: available) {
            below = source.area(layer)
            let rates = source.layers[layer].rates
            let cap = rates.temporalLayer(for: track.preference.frameRate, current: track.temporalFilter.wanted)
            if steps.count == first, rates.hasTemporalLayers {
                for temporal in 0..<min(cap, 3) { addStep(layer, temporal, source, after: first) }
            }
            addStep(layer, cap, source, after: first)
        }
    }

    private func addStep(_ layer: Int, _ temporal: UInt8, _ source: FeedTrack, after first: Int) {
        let bitrate = source.bitrate(layer, upTo: temporal)
        // Remove earlier options that need as much bitrate or more for a smaller video, because they would never be
        // chosen.
        while steps.count > first, let last = steps.last, last.bitrate >= bitrate { steps.removeLast() }
        steps.append(LayerOption(layer: layer, temporalLayer: temporal, bitrate: bitrate))
    }
}

extension VideoPreference {
    /// The area of the box in which the video is shown, in pixels. If the subscriber has stated only a width or a
    /// height, the box is assumed to be 16:9; if neither, 1920 × 1080.
    var area: Int {
        switch (width, height) {
        case (let width?, let height?): clamped(width) * clamped(height)
        case (let width?, nil): clamped(width) * clamped(width) * 9 / 16
        case (nil, let height?): clamped(height) * clamped(height) * 16 / 9
        case (nil, nil): 1920 * 1080
        }
    }

    private func clamped(_ length: Int) -> Int { min(max(length, 0), 16_384) }
}
