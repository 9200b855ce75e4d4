// Uses the declarations of the stand-ins that neither the app nor ConfabUI uses: enumeration cases. The stand-ins
// declare all cases of an enumeration, so that the compiler detects switches that miss a case.
import AVFoundation
import CallKit
import CoreLocation
import Intents
import Network
import ReplayKit
import SwiftUI
import UIKit
import VisionKit
import WebRTC

let refusals: [CXErrorCodeIncomingCallError.Code] = [
    .unknown, .unentitled, .callUUIDAlreadyExists, .filteredByDoNotDisturb, .filteredByBlockList,
]
let locationErrors: [CLError.Code] = [.locationUnknown, .denied, .network]
let samples: [RPSampleBufferType] = [.video, .audioApp, .audioMic]
let renderings: [AVQueuedSampleBufferRenderingStatus] = [.unknown, .rendering, .failed]
let visibilities: [Visibility] = [.automatic, .visible, .hidden]
let paths: [NWPath.Status] = [.satisfied, .unsatisfied, .requiresConnection]
let keyboards: [UIKeyboardType] = [.URL, .numberPad]
let descriptions: [RTCSdpType] = [.offer, .prAnswer, .answer, .rollback]
let signaling: [RTCSignalingState] = [
    .stable, .haveLocalOffer, .haveLocalPrAnswer, .haveRemoteOffer, .haveRemotePrAnswer, .closed,
]
let bundling: [RTCBundlePolicy] = [.balanced, .maxCompat, .maxBundle]
let muxing: [RTCRtcpMuxPolicy] = [.negotiate, .require]
let tcp: [RTCTcpCandidatePolicy] = [.enabled, .disabled]
let gatherings: [RTCContinualGatheringPolicy] = [.gatherOnce, .gatherContinually]
let ice: [RTCIceConnectionState] = [
    .new, .checking, .connected, .completed, .failed, .disconnected, .closed, .count,
]
let directions: [RTCRtpTransceiverDirection] = [.sendRecv, .sendOnly, .recvOnly, .inactive, .stopped]
let media: [RTCRtpMediaType] = [.audio, .video, .data, .unsupported, .any]
let gathering: [RTCIceGatheringState] = [.new, .gathering, .complete]
let capabilities: [INCallCapability] = [.unknown, .audioCall, .videoCall]
let points: [UnitPoint] = [.center, .bottom]
let criteria: [AnimationCompletionCriteria] = [.logicallyComplete]
let contents: [UIView.ContentMode] = [.scaleToFill, .scaleAspectFit, .scaleAspectFill]
let qualities: [DataScannerViewController.QualityLevel] = [.balanced, .fast, .accurate]
