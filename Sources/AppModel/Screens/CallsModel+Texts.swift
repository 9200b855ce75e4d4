import Confab

/// The text on the call screens. Keep it identical to that on the web page.
extension CallsModel {
    private var name: String { isolated(coordinator.current?.person?.name ?? Person.unknownName) }

    public var statusText: String {
        guard let call = coordinator.current, call.id != incoming?.id else { return over.map(overText) ?? "" }
        if call.isRejoining || !coordinator.isOnline && (call.phase == .active || call.phase == .held) {
            return "Connection lost. Reconnecting…"
        }
        switch call.phase {
        case .reported, .ringing: return ""
        case .placing: return placingText(call)
        case .answering, .connecting: return "Connecting with \(name)…"
        case .held: return "On hold. \(name) cannot hear or see you."
        case .ending: return "Ending the call…"
        case .active:
            if call.call?.isPartnerConnected == false {
                return "\(name) lost their connection and may be back in a moment."
            }
            if isPartnerPaused {
                return "\(name)’s video is paused because the network is slow. You can still hear them."
            }
            return "You are talking with \(name)."
        }
    }

    private func placingText(_ call: CoordinatedCall) -> String {
        switch call.call?.devices {
        case nil: "Calling \(name)…"
        case 0: "Calling \(name)… Connecting to their device."
        case 1: "Ringing… Waiting for \(name) to answer."
        case let devices?: "Ringing on \(devices) devices… Waiting for \(name) to answer."
        }
    }

    public var incomingText: String {
        guard let call = incoming else { return "" }
        guard let person = call.person else { return "Incoming call" }
        let name = isolated(person.name)
        if isInCall { return "\(name) is calling. Accepting ends the current call." }
        return call.video ? "\(name) is calling" : "Voice call from \(name)"
    }

    public var adviceText: String {
        switch advice {
        case nil: ""
        case .allowMicrophone(let person?):
            "The call with \(isolated(person.name)) ended, because Confab is not allowed to use the microphone. "
                + "Allow it in Settings."
        case .allowMicrophone(nil):
            "The call ended, because Confab is not allowed to use the microphone. Allow it in Settings."
        case .microphoneNeeded: "Confab is not allowed to use the microphone. Allow it in Settings to call people."
        case .cameraNeeded: ConfabError.cameraNeeded.message
        case .alreadyInCall: "You are already in a call. End it first."
        case .systemRefused: "The system did not allow this. Try again."
        case .trouble(let trouble): trouble.message
        }
    }

    public var offersSettings: Bool {
        switch advice {
        case .allowMicrophone, .microphoneNeeded, .cameraNeeded: true
        case nil, .alreadyInCall, .systemRefused, .trouble: false
        }
    }
    public var offersCallAgain: Bool {
        guard !isInCall, let over else { return false }
        switch over.ending.outcome {
        case .hungUp, .ended, .answeredElsewhere, .declinedElsewhere, .merged: return false
        default: return true
        }
    }
    public var callAgainText: String { over?.ending.isOutgoing == false ? "Call back" : "Call again" }

    private func overText(_ over: Over) -> String {
        let name = isolated(over.ending.person.name)
        let lasted = over.duration.map { " It lasted \($0.clockText)." } ?? ""
        let isOutgoing = over.ending.isOutgoing
        switch over.ending.outcome {
        case .hungUp: return "\(name) ended the call.\(lasted)"
        case .ended: return "The call ended.\(lasted)"
        case .declined: return isOutgoing ? "\(name) declined the call." : "You declined the call from \(name)."
        case .cancelled:
            return isOutgoing ? "You canceled the call to \(name)." : "\(name) hung up before you answered."
        case .missed, .unanswered: return isOutgoing ? "\(name) did not answer." : "You missed a call from \(name)."
        case .busy: return isOutgoing ? "\(name) is busy. Try again later." : "\(name) called while you were busy."
        case .unreachable:
            return isOutgoing ? "\(name) cannot be reached right now." : "\(name) called but could not reach you."
        case .connectionLost: return "The connection with \(name) was lost and the call ended."
        case .answeredElsewhere:
            return isOutgoing ? "The call continues on your other device." : "You answered on another device."
        case .declinedElsewhere: return isOutgoing ? "\(name) declined the call." : "You declined on another device."
        case .merged: return ""
        // A newer server may send outcomes that are unknown to this app.
        default: return "The call with \(name) could not be connected. Check your network and try again."
        }
    }

    /// Whether there is no video from the other person.
    public var lacksPicture: Bool { partnerVideo == nil }

    public var partnerPicture: String {
        let name = coordinator.current?.person?.name ?? Person.unknownName
        return hasPicture && partnerSendsVideo && !isPartnerPaused ? "video of \(name)" : "\(name), no video"
    }

    /// The text for this device's self-view.
    public var ownText: String { camera.text(isOff: isCameraOff) }

    public var lines: [ScreenLine] {
        let incoming: [ScreenLine] = showsIncoming ? incomingLines : []
        if isInCall { return incoming + callLines }
        var lines = incoming + adviceLines
        if !statusText.isEmpty { lines.append(.text(statusText)) }
        lines += keepLines
        if offersCallAgain { lines.append(.button(callAgainText)) }
        return showsEnd ? lines + [.button("Close")] : lines
    }

    private var incomingLines: [ScreenLine] {
        [.title(incomingText), .button("Decline"), .button("Accept")]
    }

    private var adviceLines: [ScreenLine] {
        (adviceText.isEmpty ? [] : [.text(adviceText)]) + (offersSettings ? [.button("Open Settings")] : [])
    }

    private var callLines: [ScreenLine] {
        var lines: [ScreenLine] = [.picture(partnerPicture), .text(statusText)]
        if !durationText.isEmpty { lines.append(.text(durationText)) }
        lines += adviceLines + keepLines + [.picture(ownText)]
        if showsControls {
            lines += [
                .toggle("Mute", isOn: isMuted), .toggle("Camera off", isOn: isCameraOff),
                // The Sound button opens the system's list of audio outputs, which shows the connected devices.
                .button("Sound"), .button("Switch camera", isEnabled: canSwitchCamera),
                .toggle("Share screen", isOn: isSharingScreen), .toggle("Hold", isOn: isHeld),
            ]
        }
        return lines + [.button(endText, isEnabled: canEnd)]
    }

    private var keepLines: [ScreenLine] {
        (keepText.isEmpty ? [] : [.text(keepText)]) + (canKeep ? [.button("Keep in touch")] : [])
    }

    public var endText: String { coordinator.current?.phase == .placing ? "Cancel" : "End" }
}
